/** Wraps text into a box, in the largest size that fits. */

/** The width of a text at a size, in pixels. */
type Measure = (text: string, pixels: number) => number

type Box = { width: number; height: number; largest: number; smallest: number }
export type TextLayout = { pixels: number; lines: string[] }

/** The line height as a multiple of the font size. */
export const LINE_HEIGHT = 1.25
/** Each step reduces the font size by this factor. */
const SHRINK = 0.88

/** Uses the largest size at which the text fits; at the smallest size, an ellipsis replaces the rest. */
export function layoutText(text: string, box: Box, measure: Measure): TextLayout {
  for (let pixels = box.largest; pixels > box.smallest; pixels = Math.floor(pixels * SHRINK)) {
    const lines = wrap(text, (line) => measure(line, pixels) <= box.width)
    if (lines.length * pixels * LINE_HEIGHT <= box.height) return { pixels, lines }
  }
  const pixels = box.smallest
  const fits = (line: string) => measure(line, pixels) <= box.width
  const lines = wrap(text, fits)
  const maxLines = Math.max(1, Math.floor(box.height / (pixels * LINE_HEIGHT)))
  if (lines.length <= maxLines) return { pixels, lines }
  return { pixels, lines: [...lines.slice(0, maxLines - 1), withEllipsis(lines[maxLines - 1] ?? '', fits)] }
}

/** Breaks at blanks, and inside a word only if it is wider than a line (or the script has no blanks). */
export function wrap(text: string, fits: (line: string) => boolean): string[] {
  const lines: string[] = []
  for (const paragraph of text.split('\n')) {
    let line = ''
    for (const word of paragraph.split(/\s+/).filter(Boolean)) {
      const longer = line ? `${line} ${word}` : word
      if (fits(longer)) {
        line = longer
        continue
      }
      if (line) lines.push(line)
      const pieces = fits(word) ? [word] : breakWord(word, fits)
      lines.push(...pieces.slice(0, -1))
      line = pieces.at(-1) ?? ''
    }
    if (line) lines.push(line)
  }
  return lines
}

/** Graphemes are never split: a family of four is one emoji. */
export function graphemesOf(text: string): string[] {
  return [...new Intl.Segmenter().segment(text)].map(({ segment }) => segment)
}

function breakWord(word: string, fits: (line: string) => boolean): string[] {
  const pieces: string[] = []
  let piece = ''
  for (const grapheme of graphemesOf(word)) {
    if (piece && !fits(piece + grapheme)) {
      pieces.push(piece)
      piece = ''
    }
    piece += grapheme
  }
  return piece ? [...pieces, piece] : pieces
}

function withEllipsis(line: string, fits: (line: string) => boolean): string {
  const graphemes = graphemesOf(line)
  while (graphemes.length > 0 && !fits(`${graphemes.join('').trimEnd()}…`)) graphemes.pop()
  return `${graphemes.join('').trimEnd()}…`
}
