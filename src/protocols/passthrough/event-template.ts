/**
 * The common event of a stream is the one before it with another piece of text. What is done to such events is learned
 * once, by trying it on a piece of text of ours, and then done to the next ones without reading them.
 */
import { closingQuote } from '../../kit/json-span.ts'
import { readSseBlock } from '../../kit/sse.ts'

type Passed = { text: string; said: string; end: number }

type Templates = {
  /** The events that begin here, as far as they are like one that was learned. */
  match(text: string, at: number): Passed | undefined
  /** `rewrite`: what is told the client for an event with this data. Learns nothing where it cannot be sure. */
  learn(block: string, rewrite: (data: string) => string): void
  forget(): void
}

/** What stands around the pieces of text, as it came and as it is told. `padding`: of no meaning, and of any length. */
type Frame = {
  before: string
  after: string
  /** From one piece of text to that of the next event; made when there first is a next one in the same read. */
  between: string | undefined
  last: string | undefined
}
type Template = Frame & { told: Frame }

const SLOT = /"(?:content|reasoning_content|reasoning|arguments)": ?"/g
/** Against guessing a text by the lengths of its events. */
const PADDING = /"obfuscation": ?"/

const TEXT = 'gatehouse-text'
const PAD = 'gatehouse-padding'

/** So many are kept: words, and calls between them. */
const KEPT = 2
/** A vendor whose events have each something of their own is read instead. */
const MAX_UNUSED = 16

export function createTemplates(): Templates {
  let templates: Template[] = []
  let unused = 0

  return {
    match(text, at) {
      for (const template of templates) {
        const passed = apply(template, text, at)
        if (!passed) continue
        unused = 0
        return passed
      }
      return undefined
    },
    learn(block, rewrite) {
      if (unused >= MAX_UNUSED) return
      const template = templateOf(`${block}\n\n`, rewrite)
      if (!template) return
      unused++
      templates = [template, ...templates].slice(0, KEPT)
    },
    forget() {
      templates = []
    },
  }
}

/** As many such events as follow each other. */
function apply(template: Template, text: string, at: number): Passed | undefined {
  const { before, after, last, told } = template
  if (!text.startsWith(before, at)) return undefined
  if (last !== undefined) return applyPadded(template, text, at)
  let from = at + before.length
  let quote = closingQuote(text, from)
  // An empty piece may be told otherwise than a full one.
  if (quote === from || quote === -1 || !text.startsWith(after, quote)) return undefined
  let end = quote + after.length
  const first = text.slice(from, quote)
  // A slow vendor's events come one by one.
  if (end === text.length) return { text: told.before + first + told.after, said: first, end }
  template.between ??= after + before
  told.between ??= told.after + told.before
  const { between } = template
  const said = [first]
  while (text.startsWith(between, quote)) {
    from = quote + between.length
    quote = closingQuote(text, from)
    if (quote === from || quote === -1 || !text.startsWith(after, quote)) break
    said.push(text.slice(from, quote))
    end = quote + after.length
  }
  return { text: told.before + said.join(told.between) + told.after, said: said.join(''), end }
}

/** One event with padding after its piece of text. */
function applyPadded({ before, after, last = '', told }: Template, text: string, at: number): Passed | undefined {
  const from = at + before.length
  const quote = closingQuote(text, from)
  if (quote === from || quote === -1 || !text.startsWith(after, quote)) return undefined
  const said = text.slice(from, quote)
  const end = quote + after.length
  const close = closingQuote(text, end)
  if (close === -1 || !text.startsWith(last, close)) return undefined
  const padding = told.last === undefined ? '' : text.slice(end, close) + told.last
  return { text: told.before + said + told.after + padding, said, end: close + last.length }
}

function templateOf(event: string, rewrite: (data: string) => string): Template | undefined {
  const [found, another] = [...event.matchAll(SLOT)].filter((match) => event[endOf(match)] !== '"')
  if (!found || another) return undefined
  const from = endOf(found)
  const quote = closingQuote(event, from)
  if (quote === -1) return undefined
  const before = event.slice(0, from)
  const rest = event.slice(quote)
  const padding = PADDING.exec(rest)
  const after = padding ? rest.slice(0, endOf(padding)) : rest
  const last = padding ? rest.slice(closingQuote(rest, endOf(padding))) : undefined
  const data = readSseBlock(`${before}${TEXT}${after}${last === undefined ? '' : PAD + last}`)?.data ?? ''
  const [tellBefore = '', told, more] = rewrite(data).split(TEXT)
  if (told === undefined || more !== undefined) return undefined
  const [tellAfter = '', tellLast] = told.split(PAD)
  return { ...frame(before, after, last), told: frame(tellBefore, tellAfter, tellLast) }
}

const frame = (before: string, after: string, last: string | undefined): Frame => ({
  before,
  after,
  between: undefined,
  last,
})

const endOf = (match: RegExpExecArray | RegExpMatchArray): number => (match.index ?? 0) + match[0].length
