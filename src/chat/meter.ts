/** Counts the usage of one chat request: as the provider reports it, or estimated and marked so. */
import { createSample, type Sample } from '../kit/sample.ts'
import type { Tokenizer } from '../kit/tokenizer.ts'
import type { Meter } from '../pipeline/call.ts'
import type { ChatChunk, ChatCompletion, ChatRequest, Message } from '../protocols/canonical.ts'
import { type Usage, usageFrom } from '../spec/usage.ts'

export type ChatMeter = Meter<Usage> & {
  /** Counts what passes to the client. */
  count(batch: ChatChunk[]): void
  /** The same of text that passes unread: as it stands within the quotes of JSON, latin1: one character per byte. */
  countRaw(text: string): void
  countWhole(answer: ChatCompletion): void
}

export function createMeter({ request, tokenizer }: { request: ChatRequest; tokenizer: Tokenizer }): ChatMeter {
  let measured: Usage | undefined
  /** Whether the answer came to its end: until then a vendor's counts are those of a beginning. */
  let isWhole = false
  const said = createSample()

  const estimate = async (): Promise<Usage> => {
    const [input, output] = await Promise.all([promptOf(request).tokens(tokenizer), said.tokens(tokenizer)])
    return usageFrom({ input, output, estimated: true })
  }

  async function usage(): Promise<Usage> {
    if (measured && !isWhole) measured = atLeast(measured, await said.tokens(tokenizer))
    measured ??= await estimate()
    return measured
  }

  return {
    count(batch) {
      for (const chunk of batch) {
        if (chunk.usage) measured = chunk.usage
        for (const { delta, finish_reason } of chunk.choices) {
          if (finish_reason) isWhole = true
          if (delta.content) said.add(delta.content)
          if (delta.reasoning_content) said.add(delta.reasoning_content)
          for (const call of delta.tool_calls ?? []) {
            said.add(call.function?.name ?? '')
            said.add(call.function?.arguments ?? '')
          }
        }
      }
    },
    countRaw: (text) => said.addRaw(text),
    countWhole(answer) {
      isWhole = true
      if (answer.usage) measured = answer.usage
      for (const { message } of answer.choices) {
        said.add(message.content ?? '')
        said.add(message.reasoning_content ?? '')
        for (const call of message.tool_calls ?? []) {
          said.add(call.function.name ?? '')
          said.add(call.function.arguments)
        }
      }
    },
    usage,
    units: (usage) => usage,
  }
}

/** Of an answer that broke off: some vendors count before they speak, and what they said since has come too. */
const atLeast = (begun: Usage, output: number): Usage =>
  output <= begun.output_tokens ? begun : usageFrom({ input: begun.input_tokens, output, estimated: true })

/** The words that the model was sent, for an estimate; media count nothing here. */
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
