"""What is searched: cards cut into chunks, chunks embedded, rows put into a store, and the hashes they are known by."""
