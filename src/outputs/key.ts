/** Under which keys files are kept: names that are the same, and harmless, in a directory and in a bucket. */

/** Segments of letters, digits, `_`, `-` and `.`, none of which begins with a dot: no way leads up or to a hidden name. */
const KEY = /^[A-Za-z0-9_-][A-Za-z0-9._-]*(\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$/
/** Some file systems take no longer names; a key of ours has some forty characters. */
const LONGEST = 200

export function checkKey(key: string): string {
  if (key.length > LONGEST || !KEY.test(key)) {
    throw new Error(`"${key.slice(0, LONGEST)}" is no key of a file: letters, digits, "_", "-", "." and "/" only.`)
  }
  return key
}
