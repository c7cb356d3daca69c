"""Why it fell: causes proven by changing one thing and looking again, and the patterns across them."""
