/** The coding agents that are recorded: which version, how each is started, and what its model asks for. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { chatcompatWire } from '../../test/matrix/vendors/chatcompat.ts'
import { contentgenWire } from '../../test/matrix/vendors/contentgen-compat.ts'
import { messagesWire } from '../../test/matrix/vendors/messages-compat.ts'
import { responsesWire } from '../../test/matrix/vendors/responses-compat.ts'
import type { Wire } from '../../test/matrix/vendors/wire-vendor.ts'

/** A call of a tool that the scripted model makes. */
export type ScriptedCall = { name: string; args: Record<string, unknown> }

/** Where one agent runs: its packages, an empty home, the project that it works on, and the recorder's address. */
export type Place = { packages: string; home: string; project: string; origin: string }

export type Launch = { command: string[]; environment: Record<string, string> }

export type Agent = {
  id: string
  title: string
  package: string
  version: string
  wire: Wire
  /** The calls of each answer but the last; the last answer is a text. */
  script(project: string): ScriptedCall[][]
  launch(place: Place): Launch
}

export const QUESTION = 'Please read main.ts and tell me in one sentence what it prints.'
/** What every agent is given as its key: the recorder asks for none. */
export const KEY = 'recorder-key'

const codexConfig = (model: string, origin: string) => `
model = "${model}"
model_provider = "recorder"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.recorder]
name = "recorder"
base_url = "${origin}/v1"
env_key = "RECORDER_KEY"
wire_api = "responses"
`

const GEMINI_SETTINGS = {
  general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
  privacy: { usageStatisticsEnabled: false },
  telemetry: { enabled: false },
  security: { auth: { selectedType: 'gemini-api-key' } },
}

const opencodeConfig = (origin: string) => ({
  autoupdate: false,
  share: 'disabled',
  provider: {
    recorder: {
      npm: '@ai-sdk/openai-compatible',
      name: 'Recorder',
      options: { baseURL: `${origin}/v1`, apiKey: KEY },
      models: { m: { name: 'M', limit: { context: 200_000, output: 32_000 } } },
    },
  },
})

type CodexParts = Pick<Agent, 'id' | 'title' | 'script'> & { model: string; wire?: Wire }

/** Which tools Codex sends, and how, depends on what it knows of the model. */
const codex = ({ model, wire = responsesWire, ...parts }: CodexParts): Agent => ({
  ...parts,
  package: '@openai/codex',
  version: '0.169.0',
  wire,
  launch({ packages, home, origin }) {
    mkdirSync(join(home, '.codex'), { recursive: true })
    writeFileSync(join(home, '.codex/config.toml'), codexConfig(model, origin))
    return {
      command: [
        'node',
        join(packages, '@openai/codex/bin/codex.js'),
        ...['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', QUESTION],
      ],
      environment: { CODEX_HOME: join(home, '.codex'), RECORDER_KEY: KEY },
    }
  },
})

const execCommands = (): ScriptedCall[][] => [
  [{ name: 'exec_command', args: { cmd: 'ls' } }],
  [
    { name: 'exec_command', args: { cmd: 'cat main.ts' } },
    { name: 'exec_command', args: { cmd: 'cat missing.ts' } },
  ],
]

/** The tool that runs code takes free text: its calls are custom ones. */
const codeModeWire: Wire = {
  ...responsesWire,
  events: (...args) =>
    responsesWire.events(...args).map((event) => (typeof event === 'string' ? asCustom(event) : event)),
}

function asCustom(event: string): string {
  const [head = '', data = ''] = event.split('\ndata: ')
  const said = JSON.parse(data) as { item?: { type: string; arguments?: string } }
  if (said.item?.type !== 'function_call') return event
  const { arguments: text = '', ...item } = said.item
  const input = text === '' ? '' : (JSON.parse(text) as { input: string }).input
  return `${head}\ndata: ${JSON.stringify({ ...said, item: { ...item, type: 'custom_tool_call', input } })}\n\n`
}

export const AGENTS: readonly Agent[] = [
  {
    id: 'claude-code',
    title: 'Claude Code',
    package: '@anthropic-ai/claude-code',
    version: '2.1.330',
    wire: messagesWire,
    script: (project) => [
      [{ name: 'Bash', args: { command: 'ls', description: 'List the files' } }],
      [
        { name: 'Read', args: { file_path: join(project, 'main.ts') } },
        { name: 'Bash', args: { command: 'cat missing.ts', description: 'Read another file' } },
      ],
    ],
    launch: ({ packages, origin }) => ({
      command: [
        'node',
        join(packages, '@anthropic-ai/claude-code/cli-wrapper.cjs'),
        ...['-p', QUESTION, '--model', 'claude-sonnet-4-6', '--allowedTools', 'Bash,Read'],
      ],
      environment: {
        ANTHROPIC_BASE_URL: origin,
        ANTHROPIC_API_KEY: KEY,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        DISABLE_TELEMETRY: '1',
        DISABLE_ERROR_REPORTING: '1',
        DISABLE_AUTOUPDATER: '1',
      },
    }),
  },
  codex({
    id: 'codex',
    model: 'provider/m',
    title: 'Codex with a model that it does not know',
    script: execCommands,
  }),
  codex({
    id: 'codex-tool-search',
    model: 'gpt-5.5',
    title: 'Codex with gpt-5.5: tool_search, apply_patch as a custom tool',
    script: execCommands,
  }),
  codex({
    id: 'codex-code-mode',
    model: 'gpt-6-sol',
    title: 'Codex with gpt-6-sol: tools in additional_tools, one custom tool that runs code',
    wire: codeModeWire,
    script: () => [
      [{ name: 'exec', args: { input: "text(await tools.exec_command({ cmd: 'ls' }))" } }],
      [{ name: 'exec', args: { input: "text(await tools.exec_command({ cmd: 'cat main.ts' }))" } }],
    ],
  }),
  {
    id: 'gemini-cli',
    title: 'Gemini CLI',
    package: '@google/gemini-cli',
    version: '0.61.0',
    wire: contentgenWire,
    script: (project) => [
      [{ name: 'list_directory', args: { dir_path: project } }],
      [
        { name: 'read_file', args: { file_path: join(project, 'main.ts') } },
        { name: 'read_file', args: { file_path: join(project, 'missing.ts') } },
      ],
    ],
    launch({ packages, home, origin }) {
      mkdirSync(join(home, '.gemini'), { recursive: true })
      writeFileSync(join(home, '.gemini/settings.json'), JSON.stringify(GEMINI_SETTINGS))
      return {
        command: [
          'node',
          join(packages, '@google/gemini-cli/bundle/gemini.js'),
          ...['-p', QUESTION, '--model', 'gemini-2.5-pro', '--approval-mode', 'yolo', '--skip-trust'],
        ],
        environment: {
          GOOGLE_GEMINI_BASE_URL: origin,
          GEMINI_API_KEY: KEY,
          GEMINI_TELEMETRY_ENABLED: 'false',
          GEMINI_CLI_TRUST_WORKSPACE: 'true',
        },
      }
    },
  },
  {
    id: 'opencode',
    title: 'opencode',
    package: 'opencode-ai',
    version: '1.18.33',
    wire: chatcompatWire,
    script: (project) => [
      [{ name: 'bash', args: { command: 'ls', description: 'List the files' } }],
      [
        { name: 'read', args: { filePath: join(project, 'main.ts') } },
        { name: 'bash', args: { command: 'cat missing.ts', description: 'Read another file' } },
      ],
    ],
    launch({ packages, home, origin }) {
      mkdirSync(join(home, '.config/opencode'), { recursive: true })
      writeFileSync(join(home, '.config/opencode/opencode.json'), JSON.stringify(opencodeConfig(origin)))
      const platform = `opencode-${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
      return {
        command: [join(packages, platform, 'bin/opencode'), 'run', '--model', 'recorder/m', QUESTION],
        environment: {
          OPENCODE_DISABLE_AUTOUPDATE: '1',
          OPENCODE_DISABLE_MODELS_FETCH: '1',
          OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
          OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
          OPENCODE_DISABLE_SHARE: '1',
        },
      }
    },
  },
]
