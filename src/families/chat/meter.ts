/** Counts the usage of one chat request: as the provider reports it, or estimated and marked so. */
import type { Meter } from '../../calls/call.ts'
import { memberOf } from '../../kit/json.ts'
import { createSample, type Sample } from '../../kit/sample.ts'
import type { Tokenizer } from '../../kit/tokenizer.ts'
import type { ChatChunk, ChatRequest, Delta, Message } from '../../protocols/shared/canonical.ts'
import type { CountedWhole } from '../../protocols/shared/protocol.ts'
import { mediaTokens } from '../../protocols/shared/token-estimate.ts'
import { type Units, type Usage, unitsOfUsage, usageFrom } from '../../spec/usage.ts'

export type ChatMeter = Required<Meter<Usage>> & {
  /** Counts what is sent to the client. */
  count(batch: ChatChunk[]): void
  /** The same for text that passes without being parsed: as it is between the quotes of JSON, in latin1, one character per byte. */
  countRaw(text: string): void
  countWhole(answer: CountedWhole): void
}

export const createMeter = (request: ChatRequest, tokenizer: Tokenizer): ChatMeter =>
  new CountingMeter(request, tokenizer)

/** One object for each call, without closures. */
class CountingMeter implements ChatMeter {
  readonly #request: ChatRequest
  readonly #tokenizer: Tokenizer
  #measured: Usage | undefined
  /** Whether the response is complete: until then a provider's counts cover only its beginning. */
  #isWhole = false
  #hasImages = false
  /** Characters of base64. */
  #audioLength = 0
  /** The text that was sent to the client; created with the first of it, since a whole response with a count needs none. */
  #sample: Sample | undefined

  constructor(request: ChatRequest, tokenizer: Tokenizer) {
    this.#request = request
    this.#tokenizer = tokenizer
  }

  count(batch: ChatChunk[]): void {
    for (const chunk of batch) {
      if (chunk.usage) this.#measured = chunk.usage
      for (const { delta, finish_reason } of chunk.choices) {
        if (finish_reason) this.#isWhole = true
        if (delta.content) this.#generated.add(delta.content)
        if (delta.images) this.#hasImages = true
        if (delta.audio) this.#addAudio(delta.audio)
        if (delta.reasoning_content) this.#generated.add(delta.reasoning_content)
        if (!delta.tool_calls) continue
        for (const call of delta.tool_calls) {
          this.#generated.add(call.function?.name ?? '')
          this.#generated.add(call.function?.arguments ?? '')
        }
      }
    }
  }

  countRaw(text: string): void {
    this.#generated.addRaw(text)
  }

  countWhole(answer: CountedWhole): void {
    this.#isWhole = true
    if (answer.usage) this.#measured = answer.usage
    else {
      addWhole(this.#generated, answer)
      for (const { message } of answer.choices) if (message.audio) this.#addAudio(message.audio)
    }
  }

  usage(): Usage | Promise<Usage> {
    return this.#measured && this.#isWhole ? this.#measured : this.#completed()
  }

  hasCounted(): boolean {
    return this.#isWhole || this.#sample !== undefined || this.#audioLength > 0
  }

  hasDelivered(): boolean {
    return this.#hasImages
  }

  units(usage: Usage): Units {
    return unitsOfUsage(usage, this.#request.service_tier)
  }

  get #generated(): Sample {
    this.#sample ??= createSample()
    return this.#sample
  }

  async #completed(): Promise<Usage> {
    if (this.#measured) {
      const text = await this.#generated.tokens(this.#tokenizer)
      this.#measured = atLeast(this.#measured, text, this.#audioTokens())
    }
    this.#measured ??= await this.#estimate()
    return this.#measured
  }

  #addAudio({ data, transcript }: NonNullable<Delta['audio']>): void {
    if (data) this.#audioLength += data.length
    if (transcript) this.#generated.add(transcript)
  }

  /** Of the audio that was sent to the client. */
  #audioTokens(): number {
    if (this.#audioLength === 0) return 0
    const format = memberOf(this.#request.audio, 'format')
    const bytes = typeof format === 'string' && UNCOMPRESSED.has(format) ? PCM_BYTES_A_TOKEN : CODED_BYTES_A_TOKEN
    return Math.ceil((this.#audioLength * 3) / 4 / bytes)
  }

  async #estimate(): Promise<Usage> {
    const tokenizer = this.#tokenizer
    const texts = [promptOf(this.#request), this.#generated]
    const [input = 0, output = 0] = await Promise.all(texts.map((text) => text.tokens(tokenizer)))
    const output_audio = this.#audioTokens()
    const input_audio = inputAudioTokens(this.#request)
    return usageFrom({
      input: input + input_audio,
      input_audio,
      output: output + output_audio,
      output_audio,
      estimated: true,
    })
  }
}

/** Of the audio in a request. */
function inputAudioTokens({ messages }: ChatRequest): number {
  let tokens = 0
  for (const { content } of messages) {
    if (!Array.isArray(content)) continue
    for (const part of content) if (part.type === 'input_audio') tokens += mediaTokens(part)
  }
  return tokens
}

function addWhole(sample: Sample, { choices }: CountedWhole): void {
  for (const { message } of choices) {
    sample.add(message.content ?? '')
    sample.add(message.reasoning_content ?? '')
    for (const call of message.tool_calls ?? []) {
      sample.add(call.function.name ?? '')
      sample.add(call.function.arguments)
    }
  }
}

/** For a response that broke off: some providers report counts before the output, and the output after them counts too. */
function atLeast(reported: Usage, text: number, output_audio: number): Usage {
  const output = text + output_audio
  if (output <= reported.output_tokens) return reported
  return usageFrom({ input: reported.input_tokens, output, output_audio, estimated: true })
}

/** Twenty tokens a second (OpenAI): of 24,000 samples of two bytes, and of the usual 64 kbit/s. */
const PCM_BYTES_A_TOKEN = 2_400
const CODED_BYTES_A_TOKEN = 400
const UNCOMPRESSED: ReadonlySet<string> = new Set(['pcm16', 'wav'])

/** The text that the model was sent, for an estimate; media do not count here. */
function promptOf(request: ChatRequest): Sample {
  const sample = createSample()
  for (const message of request.messages) sample.add(`${messageText(message)}\n`)
  const tools = request.tools ?? request.functions
  if (tools) sample.add(JSON.stringify(tools))
  return sample
}

function messageText({ role, content, tool_calls }: Message): string {
  const parts = Array.isArray(content)
    ? content.map((part) => (part.type === 'text' ? part.text : ''))
    : [content ?? '']
  const calls = (tool_calls ?? []).map((call) => `${call.function.name} ${call.function.arguments}`)
  return [role, ...parts, ...calls].join(' ')
}
