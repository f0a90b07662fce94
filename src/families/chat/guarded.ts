/** The texts of a chat request and of a whole answer, for guards. */
import type { CallGuards } from '../../calls/guards/call-guards.ts'
import { type GuardedText, jsonAt, textAt } from '../../calls/guards/content.ts'
import type { Answered } from '../../calls/guards/guard.ts'
import type {
  AnswerMessage,
  ChatCompletion,
  ChatRequest,
  HistoryCall,
  Message,
} from '../../protocols/shared/canonical.ts'
import type { ContentPart } from '../../spec/message.ts'

/** Members without a text that somebody has written. */
const UNREAD: ReadonlySet<string> = new Set(['model', 'messages', 'stream', 'stream_options', 'usage', 'logit_bias'])

/** A copy whose texts can be changed, and these texts. Media are not read. */
export function guardedRequest(given: ChatRequest): { request: ChatRequest; texts: GuardedText[] } {
  const request: ChatRequest = { ...given, messages: given.messages.map(copyOf) }
  const texts = request.messages.flatMap(textsOf)
  // Tools, schemas, stop sequences, the name of the user: whatever a provider may get.
  for (const name of Object.keys(request) as (keyof ChatRequest & string)[])
    if (!UNREAD.has(name)) texts.push(...jsonAt(request, name))
  return { request, texts }
}

const copyOf = (message: Message): Message => ({
  ...message,
  ...(Array.isArray(message.content) && { content: message.content.map(copyOfPart) }),
  ...(message.tool_calls && { tool_calls: message.tool_calls.map(copyOfCall) }),
  ...(message.reasoning_details && { reasoning_details: message.reasoning_details.map((piece) => ({ ...piece })) }),
  ...(message.function_call && { function_call: { ...message.function_call } }),
})

function copyOfPart(part: ContentPart): ContentPart {
  if (part.type === 'image_url') return { ...part, image_url: { ...part.image_url } }
  return part.type === 'file' ? { ...part, file: { ...part.file } } : { ...part }
}

const copyOfCall = (call: HistoryCall): HistoryCall => ({ ...call, function: { ...call.function } })

const textsOf = (message: Message): GuardedText[] => [
  ...(Array.isArray(message.content) ? message.content.flatMap(textsOfPart) : textAt(message, 'content')),
  ...textAt(message, 'name'),
  ...textAt(message, 'reasoning_content'),
  ...(message.reasoning_details ?? []).flatMap((piece) => textAt(piece, 'text')),
  ...textAt(message, 'refusal'),
  ...(message.tool_calls ?? []).flatMap((call) => textAt(call.function, 'arguments', true)),
  ...(message.function_call ? textAt(message.function_call, 'arguments', true) : []),
]

function textsOfPart(part: ContentPart): GuardedText[] {
  if (part.type === 'text') return textAt(part, 'text')
  if (part.type === 'refusal') return textAt(part, 'refusal')
  if (part.type === 'file') return [...textAt(part.file, 'filename'), ...addressAt(part.file, 'file_url')]
  return part.type === 'image_url' ? addressAt(part.image_url, 'url') : []
}

/** The address of a file; a `data:` address is the file itself. */
const addressAt = <Key extends PropertyKey>(holder: { [name in Key]?: unknown }, key: Key): GuardedText[] =>
  String(holder[key] ?? '').startsWith('data:') ? [] : textAt(holder, key)

/** The answer that the client gets: checked, with values in place of their placeholders. */
export async function guardedAnswer(
  guards: CallGuards,
  answer: ChatCompletion,
  answered: Answered,
): Promise<ChatCompletion> {
  const choices = answer.choices.map(({ logprobs: _, ...choice }) => ({
    ...choice,
    message: copyOfAnswer(choice.message),
  }))
  const texts = () => choices.flatMap(({ message }) => textsOfAnswer(message))
  const fit = async () => {
    for (const { message } of choices) {
      const text = message.content ?? ''
      const fitted = message.tool_calls?.length ? text : await guards.fitted(text, answered)
      if (fitted !== text) message.content = fitted
    }
    return texts()
  }
  return { ...answer, choices: (await guards.checkOutput(texts(), fit)) ? choices : choices.map(emptied) }
}

const copyOfAnswer = (message: AnswerMessage): AnswerMessage => ({
  ...message,
  ...(message.reasoning_details && { reasoning_details: message.reasoning_details.map((piece) => ({ ...piece })) }),
  ...(message.tool_calls && {
    tool_calls: message.tool_calls.map((call) => ({ ...call, function: { ...call.function } })),
  }),
})

const textsOfAnswer = (message: Partial<AnswerMessage>): GuardedText[] => [
  ...textAt(message, 'content'),
  ...textAt(message, 'refusal'),
  ...textAt(message, 'reasoning_content'),
  ...(message.reasoning_details ?? []).flatMap((piece) => textAt(piece, 'text')),
  ...(message.tool_calls ?? []).flatMap((call) => textAt(call.function, 'arguments', true)),
  ...jsonAt(message, 'annotations'),
]

/** What is left of a choice that a guard has blocked. */
const emptied = ({ index }: ChatCompletion['choices'][number]): ChatCompletion['choices'][number] => ({
  index,
  message: { role: 'assistant', content: '' },
  finish_reason: 'content_filter',
})
