/** Counts the usage of one chat request: as the provider reports it, or estimated and marked so. */
import { createSample, type Sample } from '../kit/sample.ts'
import type { Tokenizer } from '../kit/tokenizer.ts'
import type { Meter } from '../pipeline/call.ts'
import type { ChatChunk, ChatCompletion, ChatRequest, Message } from '../protocols/canonical.ts'
import { unitsOfUsage } from '../spec/units.ts'
import { type Usage, usageFrom } from '../spec/usage.ts'

export type ChatMeter = Meter<Usage> & {
  /** Counts what is sent to the client. */
  count(batch: ChatChunk[]): void
  /** The same for text that passes without being parsed: as it is between the quotes of JSON, in latin1, one character per byte. */
  countRaw(text: string): void
  countWhole(answer: ChatCompletion): void
}

export function createMeter({ request, tokenizer }: { request: ChatRequest; tokenizer: Tokenizer }): ChatMeter {
  let measured: Usage | undefined
  /** Whether the response is complete: until then a provider's counts cover only its beginning. */
  let isWhole = false
  /** The text that was sent to the client; created with the first of it, since a whole response with a count needs none. */
  let sample: Sample | undefined
  const generated = (): Sample => {
    sample ??= createSample()
    return sample
  }

  const estimate = async (): Promise<Usage> => {
    const [input, output] = await Promise.all([promptOf(request).tokens(tokenizer), generated().tokens(tokenizer)])
    return usageFrom({ input, output, estimated: true })
  }

  async function usage(): Promise<Usage> {
    if (measured && !isWhole) measured = atLeast(measured, await generated().tokens(tokenizer))
    measured ??= await estimate()
    return measured
  }

  return {
    count(batch) {
      for (const chunk of batch) {
        if (chunk.usage) measured = chunk.usage
        for (const { delta, finish_reason } of chunk.choices) {
          if (finish_reason) isWhole = true
          if (delta.content) generated().add(delta.content)
          if (delta.reasoning_content) generated().add(delta.reasoning_content)
          for (const call of delta.tool_calls ?? []) {
            generated().add(call.function?.name ?? '')
            generated().add(call.function?.arguments ?? '')
          }
        }
      }
    },
    countRaw: (text) => generated().addRaw(text),
    countWhole(answer) {
      isWhole = true
      if (answer.usage) measured = answer.usage
      else addWhole(generated(), answer)
    },
    usage,
    units: (usage) => unitsOfUsage(usage, request.service_tier),
  }
}

function addWhole(sample: Sample, { choices }: ChatCompletion): void {
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
const atLeast = (reported: Usage, output: number): Usage =>
  output <= reported.output_tokens ? reported : usageFrom({ input: reported.input_tokens, output, estimated: true })

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
