/** The difference of two texts, word by word. */
export type DiffPart = { kind: 'same' | 'removed' | 'added'; text: string }

/** Longer texts are compared line by line, and what is longer still is cut. */
const MAX_PIECES = 1_500

export function diffOf(before: string, after: string): { parts: DiffPart[]; is_cut: boolean } {
  let [from, to] = [wordsOf(before), wordsOf(after)]
  if (Math.max(from.length, to.length) > MAX_PIECES) [from, to] = [linesOf(before), linesOf(after)]
  const is_cut = Math.max(from.length, to.length) > MAX_PIECES
  return { parts: compare(from.slice(0, MAX_PIECES), to.slice(0, MAX_PIECES)), is_cut }
}

/** Each with the space after it. */
const wordsOf = (text: string): string[] => text.match(/\s*\S+\s*?(?=\s|$)|\s+/g) ?? []
const linesOf = (text: string): string[] => text.match(/[^\n]*\n|[^\n]+/g) ?? []

/** By the longest common subsequence. */
function compare(from: string[], to: string[]): DiffPart[] {
  const width = to.length + 1
  const lengths = new Uint16Array((from.length + 1) * width)
  for (let i = from.length - 1; i >= 0; i--)
    for (let j = to.length - 1; j >= 0; j--)
      lengths[i * width + j] =
        from[i] === to[j]
          ? at(lengths, (i + 1) * width + j + 1) + 1
          : Math.max(at(lengths, (i + 1) * width + j), at(lengths, i * width + j + 1))
  const parts: DiffPart[] = []
  let [i, j] = [0, 0]
  while (i < from.length || j < to.length) {
    if (i < from.length && j < to.length && from[i] === to[j]) {
      push(parts, 'same', from[i++] ?? '')
      j++
    } else if (
      j >= to.length ||
      (i < from.length && at(lengths, (i + 1) * width + j) >= at(lengths, i * width + j + 1))
    )
      push(parts, 'removed', from[i++] ?? '')
    else push(parts, 'added', to[j++] ?? '')
  }
  return parts
}

const at = (lengths: Uint16Array, index: number): number => lengths[index] ?? 0

function push(parts: DiffPart[], kind: DiffPart['kind'], text: string): void {
  const last = parts.at(-1)
  if (last?.kind === kind) last.text += text
  else parts.push({ kind, text })
}
