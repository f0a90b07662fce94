/**
 * The chunks of a streamed answer whose guards ask a model or a service: a part is held back until they let it pass, and
 * a block ends the answer as a content filter does.
 */
import type { CallGuards } from '../../calls/guards/call-guards.ts'
import type { Answered } from '../../calls/guards/guard.ts'
import type { Clock } from '../../kit/clock.ts'
import type { ChatChunk, Delta } from '../../protocols/shared/canonical.ts'
import { FittedChunks } from './fitted-stream.ts'
import { type Batch, CheckedChunks, GuardedChunks, OVER } from './guarded-stream.ts'
import type { ChatMeter } from './meter.ts'

/** A part ends with this many new characters, or this long after its first one. */
const PART_CHARACTERS = 1_000
const PART_MS = 1_000
/** Of the text before a part, which is asked about again together with it. */
const CONTEXT_CHARACTERS = 2_000

/** A meter that has counted what the guards of a stream have read. */
export const COUNTED_BEFORE = { count() {} }

type Checking = { meter: Pick<ChatMeter, 'count'>; clock: Clock; answered: Answered }

/** Others never see the values that the placeholders of the answer stand for. */
export function checkedChunks(
  chunks: AsyncIterable<ChatChunk[]>,
  guards: CallGuards,
  { meter, clock, answered }: Checking,
): AsyncIterable<ChatChunk[]> {
  if (!guards.asksAboutAnswer && !guards.hasSchemas) return new GuardedChunks(chunks, { guards, meter })
  const ruled = new GuardedChunks(chunks, { guards, meter, steps: 'rules' })
  const asked = guards.asksAboutAnswer ? new AskedChunks(ruled, guards, clock) : ruled
  const fitted = guards.hasSchemas ? new FittedChunks(asked, guards, answered) : asked
  return new GuardedChunks(fitted, { guards, meter: COUNTED_BEFORE, steps: 'restore' })
}

const LATE = Symbol('late')

class AskedChunks extends CheckedChunks {
  readonly #clock: Clock
  /** The text of each choice, as far as it is asked about again. */
  readonly #texts = new Map<number, string>()
  readonly #finished = new Set<number>()
  /** The next batch, which is read only once. */
  #next: Promise<Batch> | undefined

  constructor(source: AsyncIterable<ChatChunk[]>, guards: CallGuards, clock: Clock) {
    super(source, guards)
    this.#clock = clock
  }

  async next(): Promise<Batch> {
    if (this.isOver) return OVER
    const part = await this.#readPart()
    if (part.length === 0) return OVER
    try {
      if (this.#add(part)) await this.guards.askAboutPart([...this.#texts.values()])
    } catch (thrown) {
      const open = [...this.#texts.keys()].filter((index) => !this.#finished.has(index))
      return { done: false, value: await this.refused(thrown, part.at(-1), open) }
    }
    for (const { index, finish_reason } of part.flatMap(({ choices }) => choices))
      if (finish_reason) this.#finished.add(index)
    return { done: false, value: part }
  }

  override return(): Promise<Batch> {
    this.#next?.catch(() => {})
    return super.return()
  }

  /** Empty: the answer has ended. */
  async #readPart(): Promise<ChatChunk[]> {
    const part: ChatChunk[] = []
    let length = 0
    let cancel = () => {}
    let late: Promise<typeof LATE> | undefined
    try {
      while (length < PART_CHARACTERS) {
        this.#next ??= this.source.next()
        const read = await (late ? Promise.race([this.#next, late]) : this.#next)
        if (read === LATE) break
        this.#next = undefined
        if (read.done) {
          this.isOver = true
          break
        }
        part.push(...read.value)
        length += read.value.reduce((sum, chunk) => sum + lengthOf(chunk), 0)
        if (!late && length > 0)
          late = new Promise((resolve) => (cancel = this.#clock.after(PART_MS, () => resolve(LATE))))
        // What has no text is passed on at once.
        if (length === 0) break
      }
    } finally {
      cancel()
    }
    return part
  }

  /** Whether there is a text in it. */
  #add(part: readonly ChatChunk[]): boolean {
    let hasText = false
    const added = new Map<number, string>()
    for (const { index, delta } of part.flatMap(({ choices }) => choices))
      added.set(index, (added.get(index) ?? '') + textOf(delta))
    for (const [index, text] of added) {
      if (text === '') continue
      hasText = true
      this.#texts.set(index, (this.#texts.get(index) ?? '').slice(-CONTEXT_CHARACTERS) + text)
    }
    return hasText
  }
}

const textOf = ({ content, reasoning_content, reasoning, refusal, tool_calls, annotations, ...rest }: Delta): string =>
  [content, reasoning_content, reasoning, refusal, ...(rest.reasoning_details ?? []).map(({ text }) => text)].join('') +
  (tool_calls ?? []).map((call) => `${call.function?.name ?? ''}${call.function?.arguments ?? ''}`).join('') +
  (annotations ? JSON.stringify(annotations) : '')

const lengthOf = ({ choices }: ChatChunk): number => choices.reduce((sum, { delta }) => sum + textOf(delta).length, 0)
