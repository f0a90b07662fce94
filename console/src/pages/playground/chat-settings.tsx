/** The system prompt, parameters, structured output and tools of all models. */
import { TextArea, TextField } from '../../ui/field.tsx'
import { Select } from '../../ui/select.tsx'
import { jsonProblem } from './chat-body.ts'
import { changeDraft } from './chat-store.ts'
import type { ChatSettings } from './chat-types.ts'
import type { ModelFacts } from './model-limits.ts'

type SettingsProps = {
  settings: ChatSettings
  models: string[]
  facts: ModelFacts[]
  onChange(changes: Partial<ChatSettings>): void
}

const EFFORTS = ['', 'none', 'minimal', 'low', 'medium', 'high', 'xhigh'].map((value) => ({
  value,
  label: value || 'default',
}))
const FORMATS = [
  { value: 'text', label: 'Text' },
  { value: 'json_object', label: 'JSON' },
  { value: 'json_schema', label: 'JSON schema' },
]
const NUMBERS = [
  { name: 'temperature', label: 'Temperature' },
  { name: 'top_p', label: 'Top p' },
  { name: 'max_tokens', label: 'Max tokens' },
  { name: 'seed', label: 'Seed' },
] as const
const TOOLS_EXAMPLE = '[{ "type": "function", "function": { "name": "weather" } }]'

export function ChatSettingsForm({ settings, models, facts, onChange }: SettingsProps) {
  return (
    <div className="form">
      <TextArea
        label="System prompt"
        rows={3}
        maxLength={200_000}
        value={settings.system}
        onChange={(system) => changeDraft({ system })}
      />
      <div className="play-pair">
        {NUMBERS.map(({ name, label }) => (
          <TextField
            key={name}
            label={label}
            inputMode="decimal"
            placeholder="default"
            value={settings[name]}
            {...limitTexts(name, settings[name], models, facts)}
            onChange={(value) => onChange({ [name]: value })}
          />
        ))}
      </div>
      <div className="play-pair">
        <Select
          label="Reasoning"
          value={settings.effort}
          options={EFFORTS}
          onChange={(effort) => onChange({ effort })}
        />
        <Select
          label="Answer as"
          value={settings.format}
          options={FORMATS}
          onChange={(format) => onChange({ format: format as ChatSettings['format'] })}
        />
      </div>
      {settings.format === 'json_schema' && (
        <TextArea
          label="Schema"
          rows={5}
          spellCheck={false}
          maxLength={200_000}
          value={settings.schema}
          error={jsonProblem(settings.schema, 'schema')}
          onChange={(schema) => changeDraft({ schema })}
        />
      )}
      <TextField
        label="Stop"
        help="Texts that end the answer, separated by commas."
        value={settings.stop}
        onChange={(stop) => onChange({ stop })}
      />
      <TextArea
        label="Tools"
        help="A JSON list of functions. You type what they return."
        rows={4}
        spellCheck={false}
        maxLength={200_000}
        placeholder={TOOLS_EXAMPLE}
        value={settings.tools}
        error={jsonProblem(settings.tools, 'tools')}
        onChange={(tools) => changeDraft({ tools })}
      />
    </div>
  )
}

/** What the models accept, and which of them is sent its own limit instead of what was typed. */
function limitTexts(name: string, typed: string, models: string[], facts: ModelFacts[]) {
  if (typed.trim() === '') return {}
  const value = Number(typed)
  if (!Number.isFinite(value)) return { error: 'This is not a number.' }
  const beyond = models.flatMap((model, index) => {
    const { minimum, maximum } = facts[index]?.limits[name] ?? {}
    if (maximum !== undefined && value > maximum) return [`${model} is sent ${maximum}, its maximum.`]
    if (minimum !== undefined && value < minimum) return [`${model} is sent ${minimum}, its minimum.`]
    return []
  })
  return beyond.length > 0 ? { help: beyond.join(' ') } : {}
}

/** Why the settings cannot be sent. */
export function settingsProblem({ format, schema, tools }: ChatSettings): string | undefined {
  if (format === 'json_schema' && jsonProblem(schema, 'schema')) return 'The schema is not valid.'
  return jsonProblem(tools, 'tools') ? 'The tools are not valid JSON.' : undefined
}
