/** The last three majors of the `ai` package, each with the members of the newest one. */
import * as newest from 'ai'
import * as five from 'ai-5'
import * as six from 'ai-6'

type Sdk = typeof newest
type Whole = Awaited<ReturnType<Sdk['generateText']>>
type Stream = ReturnType<Sdk['streamText']>
export type AiParams = Parameters<Sdk['generateText']>[0]
export type Step = Pick<
  Whole['finalStep'],
  'text' | 'reasoningText' | 'toolCalls' | 'finishReason' | 'usage' | 'response'
>
export type Generated = { finalStep: Step; responseMessages: newest.ModelMessage[]; output: unknown }
export type Streamed = {
  stream: Stream['stream']
  finalStep: PromiseLike<Step>
  responseMessages: PromiseLike<newest.ModelMessage[]>
}

export type AiMajor = {
  major: 5 | 6 | 7
  /** Its name in our package file. */
  packageName: string
  sdk: Pick<Sdk, 'Output' | 'jsonSchema' | 'tool'>
  generateText(params: AiParams): Promise<Generated>
  streamText(params: Parameters<Sdk['streamText']>[0]): Streamed
}

export const AI_7: AiMajor = {
  major: 7,
  packageName: 'ai',
  sdk: newest,
  generateText: newest.generateText,
  streamText: newest.streamText,
}

/** The members of a result that have other names in older majors. */
type OldResult = { steps: Whole['steps']; response: { messages: newest.ModelMessage[] }; output: unknown }
type OldStream = {
  fullStream: Stream['stream']
  steps: PromiseLike<Whole['steps']>
  response: PromiseLike<OldResult['response']>
}
type OldParts = { major: 5 | 6; module: unknown; outputName: 'experimental_output' | 'output' }

function olderMajor({ major, module, outputName }: OldParts): AiMajor {
  // The types used here are the same in all majors, which TypeScript cannot know.
  const sdk = module as Sdk
  const oldParams = <T extends AiParams>({ instructions, output, ...rest }: T) =>
    ({ ...rest, system: instructions, [outputName]: output }) as unknown as T
  return {
    major,
    packageName: `ai-${major}`,
    sdk,
    async generateText(params) {
      const result = (await sdk.generateText(oldParams(params))) as unknown as OldResult & Record<string, unknown>
      return {
        finalStep: lastStep(result.steps),
        responseMessages: result.response.messages,
        // A getter that throws where no output was requested.
        get output() {
          return result[outputName]
        },
      }
    },
    streamText(params) {
      const running = sdk.streamText(oldParams(params as AiParams)) as unknown as OldStream
      return {
        stream: running.fullStream,
        // Getters, as in the newest major: a promise that nobody reads must not reject.
        get finalStep() {
          return running.steps.then(lastStep)
        },
        get responseMessages() {
          return running.response.then(({ messages }) => messages)
        },
      }
    },
  }
}

function lastStep(steps: Whole['steps']): Step {
  const step = steps.at(-1)
  if (!step) throw new Error('There is no step.')
  // Its members are getters, which a copy loses.
  const { text, reasoningText, toolCalls, finishReason, usage, response } = step
  return { text, reasoningText, toolCalls, finishReason, usage: usageOf(usage), response }
}

type OldUsage = {
  inputTokens: number | undefined
  outputTokens: number | undefined
  cachedInputTokens?: number
  reasoningTokens?: number
}

/** Version 5 has its details at the top. */
function usageOf(usage: Step['usage'] | OldUsage): Step['usage'] {
  if ('inputTokenDetails' in usage) return usage
  const { cachedInputTokens: cacheReadTokens, reasoningTokens, ...counts } = usage
  const details = { inputTokenDetails: { cacheReadTokens }, outputTokenDetails: { reasoningTokens } }
  return { ...counts, ...details } as Step['usage']
}

export const AI_6 = olderMajor({ major: 6, module: six, outputName: 'output' })
export const AI_5 = olderMajor({ major: 5, module: five, outputName: 'experimental_output' })
