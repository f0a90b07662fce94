/**
 * The chunks of a streamed answer after its guards: a text is passed on as soon as it cannot become a match any more, and
 * a block ends the answer as a content filter does.
 */
import type { CallGuards, GuardSteps } from '../../calls/guards/call-guards.ts'
import { Blocked, type TextFilter } from '../../calls/guards/text-filter.ts'
import type { ChatChunk, ChunkChoice, Delta, ToolCall } from '../../protocols/shared/canonical.ts'
import type { ChatMeter } from './meter.ts'

const TEXTS = ['content', 'reasoning_content', 'reasoning', 'refusal'] as const
type TextName = (typeof TEXTS)[number]

type NewFilter = (isJson: boolean) => TextFilter

export type Batch = IteratorResult<ChatChunk[], undefined>
export const OVER: Batch = { done: true, value: undefined }

/** A streamed answer that guards check: a block ends it as a content filter does. */
export abstract class CheckedChunks implements AsyncIterableIterator<ChatChunk[], undefined> {
  protected readonly source: AsyncIterator<ChatChunk[], undefined>
  protected readonly guards: CallGuards
  protected isOver = false

  constructor(source: AsyncIterable<ChatChunk[]>, guards: CallGuards) {
    this.source = source[Symbol.asyncIterator]()
    this.guards = guards
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  abstract next(): Promise<Batch>

  async return(): Promise<Batch> {
    this.isOver = true
    await this.source.return?.()
    return OVER
  }

  /** The end of the choices that are open, where a guard blocks; anything else that was thrown is thrown again. */
  protected async refused(thrown: unknown, last: ChatChunk | undefined, open: Iterable<number>): Promise<ChatChunk[]> {
    await this.return()
    if (!(thrown instanceof Blocked)) throw thrown
    this.guards.blockedBy(thrown)
    if (!last) return []
    const { usage: _, ...rest } = last
    return [{ ...rest, choices: [...open].map((index) => ({ index, delta: {}, finish_reason: 'content_filter' })) }]
  }
}

/** The indexes of the choices that have not finished. */
export const openOf = (choices: ReadonlyMap<number, { readonly isFinished: boolean }>): number[] =>
  [...choices].flatMap(([index, { isFinished }]) => (isFinished ? [] : index))

/** `meter`: counts what the provider sends, as it sends it. */
type GuardedParts = { guards: CallGuards; meter: Pick<ChatMeter, 'count'>; steps?: GuardSteps }

export class GuardedChunks extends CheckedChunks {
  readonly #meter: Pick<ChatMeter, 'count'>
  readonly #filter: NewFilter
  readonly #choices = new Map<number, ChoiceFilter>()
  #last: ChatChunk | undefined

  constructor(source: AsyncIterable<ChatChunk[]>, { guards, meter, steps }: GuardedParts) {
    super(source, guards)
    this.#meter = meter
    this.#filter = guards.outputFilters(steps)
  }

  async next(): Promise<Batch> {
    while (!this.isOver) {
      const { done, value } = await this.source.next()
      const chunks = await this.#guarded(done ? undefined : value)
      if (chunks.length > 0) return { done: false, value: chunks }
    }
    return OVER
  }

  /** `batch` undefined: the answer has ended. */
  async #guarded(batch: ChatChunk[] | undefined): Promise<ChatChunk[]> {
    const out: ChatChunk[] = []
    try {
      if (batch) {
        this.#meter.count(batch)
        for (const chunk of batch) this.#take(chunk, out)
      } else {
        this.isOver = true
        this.#endAll(out)
      }
    } catch (thrown) {
      out.push(...(await this.refused(thrown, this.#last, openOf(this.#choices))))
    }
    return out
  }

  #take(chunk: ChatChunk, out: ChatChunk[]): void {
    this.#last = chunk
    const choices: ChunkChoice[] = []
    for (const choice of chunk.choices) {
      const filter = this.#choices.getOrInsertComputed(choice.index, () => new ChoiceFilter(this.#filter))
      const before = filter.before(choice.delta)
      if (before) out.push(chunkOf(chunk, choice.index, before))
      const guarded = filter.take(choice)
      if (guarded) choices.push(guarded)
    }
    if (choices.length > 0 || chunk.choices.length === 0 || chunk.usage) out.push({ ...chunk, choices })
  }

  /** What is held back where the provider has sent no finish reason. */
  #endAll(out: ChatChunk[]): void {
    for (const [index, filter] of this.#choices) {
      const rest = filter.end()
      if (rest && this.#last) out.push(chunkOf(this.#last, index, rest))
    }
  }
}

export function chunkOf({ usage: _, ...chunk }: ChatChunk, index: number, delta: Delta): ChatChunk {
  return { ...chunk, choices: [{ index, delta, finish_reason: null }] }
}

/** The texts of one choice, each with a filter of its own. */
class ChoiceFilter {
  readonly #newFilter: NewFilter
  readonly #texts = new Map<TextName, TextFilter>()
  readonly #calls = new Map<number, TextFilter>()
  isFinished = false

  constructor(newFilter: NewFilter) {
    this.#newFilter = newFilter
  }

  /** What other texts held back, which ends where this delta goes on with another one. Undefined: nothing. */
  before(delta: Delta): Delta | undefined {
    const texts = [...this.#texts.keys()].filter((name) => !delta[name] && goesOn(delta))
    const opens = delta.tool_calls?.some((call, at) => !this.#calls.has(call.index ?? at))
    const calls = opens || TEXTS.some((name) => delta[name]) ? [...this.#calls.keys()] : []
    return this.#ended(texts, calls)
  }

  /** Undefined: nothing of it may be sent yet. */
  take({ logprobs: _, ...choice }: ChunkChoice): ChunkChoice | undefined {
    const delta: Delta = { ...choice.delta }
    for (const name of TEXTS) {
      const text = delta[name]
      if (!text) continue
      const passed = this.#filterOf(name).push(text)
      if (passed === '') delete delta[name]
      else delta[name] = passed
    }
    if (delta.tool_calls) delta.tool_calls = delta.tool_calls.map((call, at) => this.#takeCall(call, call.index ?? at))
    if (delta.reasoning_details)
      delta.reasoning_details = delta.reasoning_details.map((piece) =>
        piece.text ? { ...piece, text: this.#whole(piece.text) } : piece,
      )
    if (delta.annotations) delta.annotations = JSON.parse(this.#whole(JSON.stringify(delta.annotations), true))
    if (choice.finish_reason) {
      this.isFinished = true
      const rest = this.#ended([...this.#texts.keys()], [...this.#calls.keys()])
      return { ...choice, delta: joined(delta, rest) }
    }
    return Object.keys(delta).length > 0 ? { ...choice, delta } : undefined
  }

  /** Undefined: nothing was held back. */
  end(): Delta | undefined {
    return this.#ended([...this.#texts.keys()], [...this.#calls.keys()])
  }

  #filterOf(name: TextName): TextFilter {
    return this.#texts.getOrInsertComputed(name, () => this.#newFilter(false))
  }

  #takeCall(call: ToolCall, index: number): ToolCall {
    const filter = this.#calls.getOrInsertComputed(index, () => this.#newFilter(true))
    const { arguments: text = '' } = call.function ?? {}
    return text === '' ? call : { ...call, function: { ...call.function, arguments: filter.push(text) } }
  }

  /** Each of these texts is over: a later one of its name is another text. */
  #ended(texts: readonly TextName[], calls: readonly number[]): Delta | undefined {
    const delta: Delta = {}
    for (const name of texts) {
      const rest = this.#texts.get(name)?.end() ?? ''
      this.#texts.delete(name)
      if (rest !== '') delta[name] = rest
    }
    for (const index of calls) {
      const rest = this.#calls.get(index)?.end() ?? ''
      if (rest === '') continue
      delta.tool_calls ??= []
      delta.tool_calls.push({ index, function: { arguments: rest } })
    }
    return Object.keys(delta).length > 0 ? delta : undefined
  }

  #whole(text: string, isJson = false): string {
    const filter = this.#newFilter(isJson)
    return filter.push(text) + filter.end()
  }
}

const goesOn = (delta: Delta): boolean =>
  TEXTS.some((name) => delta[name]) || (delta.tool_calls?.length ?? 0) > 0 || (delta.images?.length ?? 0) > 0

/** The rest of each text follows what the last delta has of it. */
function joined(delta: Delta, rest: Delta | undefined): Delta {
  if (!rest) return delta
  const out = { ...delta }
  for (const name of TEXTS) if (rest[name]) out[name] = (out[name] ?? '') + rest[name]
  if (rest.tool_calls) out.tool_calls = [...(out.tool_calls ?? []), ...rest.tool_calls]
  return out
}
