/** Asks a chat model for the gateway itself, which reads the answer instead of sending it on. */
import type { Call } from '../../calls/call.ts'
import type { Pipeline } from '../../calls/pipeline.ts'
import type { ChatCompletion } from '../../protocols/shared/canonical.ts'
import type { ResponseEncoder } from '../../protocols/shared/protocol.ts'
import type { Usage } from '../../spec/usage.ts'
import type { Chat, ChatInput } from './chat.ts'

const AS_IT_IS: ResponseEncoder = {
  whole: (answer) => answer,
  includesUsage: true,
  encode: () => '',
  end: () => '',
  fail: () => '',
}

/** The whole answer. Rejects as the pipeline does. */
export async function askChat(
  { pipeline, chat }: { pipeline: Pick<Pipeline, 'run'>; chat: Chat },
  call: Call,
  input: Pick<ChatInput, 'family' | 'request' | 'answer'>,
): Promise<{ completion: ChatCompletion; usage: Usage }> {
  const { answer, usage } = await pipeline.run(chat.whole, call, { ...input, writer: () => AS_IT_IS })
  return { completion: answer.encode(usage) as ChatCompletion, usage }
}
