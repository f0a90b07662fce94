/** Judges whether a text is in another language than those that a guard allows. */

/** Of a text that is no JSON. `isCode`: it begins within a block of code. False where it is not certain. */
export type IsForeign = (text: string, isCode?: boolean) => boolean

/** Letters in bytes of UTF-8; less is a name or a greeting, which may be of any language. */
const MIN_BYTES = 40
/** By which the most likely language must be before all allowed ones. Of 128 sentences in 16 languages none is wrong with it. */
const MARGIN = 0.1
/** The library reads no more of a text; of a longer one so many parts are read. */
const PART_CHARACTERS = 360
const MAX_PARTS = 8

const CODE_BLOCK = /(```|~~~)[\s\S]*?(?:\1|$)/g
/** Code in a line, and what has signs of code, paths, addresses and numbers. */
const CODE = /`[^`\n]*`|[!-~]*[0-9_/\\<>{}=|@][!-~]*/g

let detector: typeof import('eld/extrasmall')['eld'] | undefined

/** Its tables take 60 MB: they are loaded with the first guard that needs them, and before its first text. */
export async function loadDetector(): Promise<void> {
  detector ??= (await import('eld/extrasmall')).eld
}

export function foreignTo(allowed: readonly string[]): IsForeign {
  // Where that fails, the first call says why.
  void loadDetector().catch(() => {})
  return (text, isCode = false) => {
    if (!detector) throw new Error('A text was judged before the detector was loaded.')
    const scores: Record<string, number> = {}
    let bytes = 0
    for (const part of partsOf((isCode ? `\`\`\`${text}` : text).replace(CODE_BLOCK, ' '))) {
      const prose = part.replace(CODE, ' ')
      const weight = Buffer.byteLength(prose.replace(/\P{L}+/gu, ''))
      bytes += weight
      for (const [language, score] of Object.entries(detector.detect(prose).getScores()))
        scores[language] = (scores[language] ?? 0) + score * weight
    }
    const most = Math.max(...allowed.map((language) => scores[language] ?? 0))
    return bytes >= MIN_BYTES && Math.max(0, ...Object.values(scores)) - most >= MARGIN * bytes
  }
}

/** From all over the text. */
function partsOf(text: string): string[] {
  const count = Math.min(MAX_PARTS, Math.ceil(text.length / PART_CHARACTERS))
  const step = text.length / count
  return Array.from({ length: count }, (_, at) => text.slice(at * step, at * step + PART_CHARACTERS))
}
