-- ARGV: id, record, account, maximum of entries of the account, maximum of entries.
add_audit_entry(ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5])
return 1
