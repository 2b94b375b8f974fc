-- ARGV: now, most values, most bytes. Answers with how many values were deleted.
return trimmed(tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]))
