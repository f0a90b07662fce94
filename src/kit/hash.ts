/** A fast hash of text for choices that must be stable; not for secrets. */

/** 32 bits, unsigned. */
export const hash32 = (text: string, seed = 0): number => Bun.hash.xxHash32(text, seed)
