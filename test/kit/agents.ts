/** The recorded requests of coding agents (test/fixtures/agents), and requests of longer sessions made of their parts. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type Anthropic from 'anthropic-sdk-0'
import type OpenAI from 'openai'
import type { Recorded } from '../../scripts/record-agents/scrub.ts'

const FOLDER = join(import.meta.dir, '../fixtures/agents')

/** The folders, one for each recorded run. */
export const AGENTS = [
  'claude-code',
  'codex',
  'codex-tool-search',
  'codex-code-mode',
  'gemini-cli',
  'opencode',
] as const
export type AgentId = (typeof AGENTS)[number]
export type AgentRequest = Omit<Recorded, 'body'> & { body: Record<string, unknown> }

/** The requests of one run, in order. */
export function recorded(agent: AgentId): AgentRequest[] {
  const folder = join(FOLDER, agent)
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .sort((one, other) => Number.parseInt(one, 10) - Number.parseInt(other, 10))
    .map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as AgentRequest)
}

function requestOf(agent: AgentId, number: number): AgentRequest {
  const request = recorded(agent)[number - 1]
  if (request === undefined) throw new Error(`There is no test/fixtures/agents/${agent}/${number}.json.`)
  return request
}

/** A request for another model, which is named in the body or, for the contentgen dialect, in the path. */
export function forModel({ path, body, ...rest }: AgentRequest, model: string): AgentRequest {
  const inPath = path.replace(/models\/[^:]+:/, `models/${model}:`)
  return { ...rest, path: inPath, body: inPath === path ? { ...body, model } : body }
}

type MessagesParams = Anthropic.Beta.MessageCreateParamsNonStreaming
type Message = Anthropic.Beta.BetaMessageParam
type Block = Anthropic.Beta.BetaContentBlockParam
const blocksOf = ({ content }: Message): Block[] => (typeof content === 'string' ? [] : content)

const CLAUDE = requestOf('claude-code', 1)
const CLAUDE_BODY = CLAUDE.body as unknown as Omit<MessagesParams, 'stream' | 'tools' | 'system'> & {
  stream: true
  tools: Anthropic.Beta.BetaTool[]
  system: Anthropic.Beta.BetaTextBlockParam[]
}
/** The turns after the second answer: a thought and a call, its result, a thought and two calls, their results. */
const [, , , TWO_CALLS, TWO_RESULTS] = requestOf('claude-code', 3).body.messages as Message[]

export const claudeCode = {
  system: CLAUDE_BODY.system,
  /** Its system prompt without the line that only its own vendor's billing reads. */
  prompt: CLAUDE_BODY.system.filter(({ text }) => !text.startsWith('x-anthropic-billing-header:')),
  tools: CLAUDE_BODY.tools,
  user_id: CLAUDE_BODY.metadata?.user_id ?? '',
  /** The first message: the reminders that the agent adds by itself, then what its user wrote. */
  first(question: string): Message {
    const blocks = blocksOf(CLAUDE_BODY.messages[0] as Message)
    return {
      role: 'user',
      content: blocks.map((block, at) => (at === blocks.length - 1 ? { ...block, text: question } : block) as Block),
    }
  },
  asked(model: string, messages: Message[]): MessagesParams {
    const { stream: _, ...body } = CLAUDE_BODY
    const betas = CLAUDE.headers['anthropic-beta']?.split(',') ?? []
    return { ...body, model, messages, betas }
  },
  picture: (data: string): Anthropic.Beta.BetaImageBlockParam => ({
    type: 'image',
    source: { type: 'base64', media_type: 'image/png', data },
  }),
  /** The recorded results of two calls for these calls; the one that succeeded has a picture beside its text. */
  results(uses: Anthropic.Beta.BetaToolUseBlock[], data: string): Message {
    const results = blocksOf(TWO_RESULTS as Message).filter((block) => block.type === 'tool_result')
    const content = uses.map(({ id }, at): Block => {
      const result = results.find(({ is_error = false }) => is_error === at > 0)
      if (result === undefined) throw new Error('The recorded results are not one success and one error.')
      const text: Anthropic.Beta.BetaTextBlockParam = { type: 'text', text: String(result.content) }
      return { ...result, tool_use_id: id, ...(at === 0 ? { content: [text, claudeCode.picture(data)] } : {}) }
    })
    return { role: 'user', content: [...content, blocksOf(CLAUDE_BODY.messages[0] as Message)[0] as Block] }
  },
  /** The recorded turn of two calls, many times: each has a redacted thought, a text, and pictures among its results. */
  longHistory({
    turns,
    data,
    question,
    last,
  }: {
    turns: number
    data: string
    question: string
    last: string
  }): Message[] {
    const [thought, ...uses] = blocksOf(TWO_CALLS as Message)
    const history: Message[] = [claudeCode.first(question)]
    for (let turn = 0; turn < turns; turn++) {
      const ids = [`toolu_${turn}_a`, `toolu_${turn}_b`]
      const calls = uses.map((use, at) => ({ ...use, id: ids[at] }) as Block)
      const [first = '', second = ''] = ids
      history.push(
        {
          role: 'assistant',
          content: [
            thought as Block,
            { type: 'redacted_thinking', data: 'RW5jcnlwdGVkIGVsc2V3aGVyZQ==' },
            { type: 'text', text: `Part ${turn}.` },
            ...calls,
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: first, content: [claudeCode.picture(data)] },
            { type: 'tool_result', tool_use_id: second, content: [{ type: 'text', text: `${turn} lines` }] },
          ],
        },
      )
    }
    history.push({ role: 'assistant', content: 'That was all.' }, { role: 'user', content: last })
    return history
  },
}

type ResponsesParams = OpenAI.Responses.ResponseCreateParamsNonStreaming
type Item = OpenAI.Responses.ResponseInputItem

const CODEX = requestOf('codex-tool-search', 1).body as unknown as Omit<ResponsesParams, 'stream' | 'input'> & {
  stream: true
  input: Item[]
  tools: OpenAI.Responses.Tool[]
}

const COMMAND_OUTPUT = (requestOf('codex-tool-search', 2).body.input as Item[]).at(
  -1,
) as OpenAI.Responses.ResponseInputItem.FunctionCallOutput

export const codex = {
  tools: CODEX.tools,
  /** The first items: two developer messages, the environment, then what its user wrote. */
  first: (question: string): Item[] => [
    ...CODEX.input.slice(0, -1),
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: question }] },
  ],
  developerTexts: CODEX.input.flatMap((item) =>
    item.type === 'message' && item.role === 'developer' && typeof item.content !== 'string'
      ? item.content.map((part) => (part.type === 'input_text' ? part.text : ''))
      : [],
  ),
  asked(model: string, input: Item[]): ResponsesParams {
    const { stream: _, ...body } = CODEX
    return { ...body, model, input }
  },
  output: String(COMMAND_OUTPUT.output),
  /** The recorded output of a command, and a picture. */
  results([command, view]: OpenAI.Responses.ResponseFunctionToolCall[], data: string): Item[] {
    return [
      { ...COMMAND_OUTPUT, call_id: command?.call_id ?? '' },
      {
        type: 'function_call_output',
        call_id: view?.call_id ?? '',
        output: [{ type: 'input_image', detail: 'auto', image_url: `data:image/png;base64,${data}` }],
      },
    ]
  },
}

/** A patch that was made in an earlier session, by another model. */
export const PATCHED: Item[] = [
  { type: 'reasoning', id: 'rs_elsewhere', summary: [], encrypted_content: 'gAAAAABo_of_another_vendor' },
  {
    type: 'custom_tool_call',
    id: 'ctc_1',
    call_id: 'call_patch',
    name: 'apply_patch',
    input: '*** Begin Patch\n*** Add File: b.ts\n+export {}\n*** End Patch',
  },
  { type: 'custom_tool_call_output', call_id: 'call_patch', output: 'Done: A b.ts' },
  {
    type: 'message',
    id: 'msg_1',
    status: 'completed',
    role: 'assistant',
    content: [{ type: 'output_text', text: 'I added b.ts.', annotations: [] }],
  },
]
