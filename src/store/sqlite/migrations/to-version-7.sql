-- Changes a store of version 6 to version 7.

-- Budgets of a week.
ALTER TABLE limits ADD COLUMN week INTEGER NOT NULL DEFAULT 0;
ALTER TABLE limits ADD COLUMN week_spent REAL NOT NULL DEFAULT 0;
ALTER TABLE limits ADD COLUMN week_reserved REAL NOT NULL DEFAULT 0;
