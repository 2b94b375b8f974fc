return trimmed(tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]))
