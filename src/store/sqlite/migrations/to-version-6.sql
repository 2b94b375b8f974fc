-- Changes a store of version 5 to version 6: the reservations, which are few, are read without an index by end.

DROP INDEX reservations_by_end;
