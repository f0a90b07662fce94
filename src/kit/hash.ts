/** A fast hash of text for choices that must be stable; for secrets only with a random seed, and never stored. */

/** 32 bits, unsigned. */
export const hash32 = (text: string, seed = 0): number => Bun.hash.xxHash32(text, seed)
