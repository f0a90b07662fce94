/** The key of a provider: typed, or a variable or a file that the gateway reads. */
import { TextField } from '../../ui/field.tsx'
import { Segments } from '../../ui/tabs.tsx'

export const KEY_SOURCES = ['key', 'variable', 'file', 'none'] as const
export type KeyDraft = { from: (typeof KEY_SOURCES)[number]; value: string }

const NAMES = { key: 'A key', variable: 'A variable', file: 'A file', none: 'None' }

/** As the configuration has it. */
export function keySettings({ from, value }: KeyDraft): { key?: string; key_file?: string } {
  const text = value.trim()
  if (text === '' || from === 'none') return {}
  if (from === 'file') return { key_file: text }
  return { key: from === 'variable' ? `\${${text}}` : text }
}

type KeyFieldsProps = {
  value: KeyDraft
  onChange(value: KeyDraft): void
  sources?: readonly KeyDraft['from'][]
  hint?: string | undefined
}

export function KeyFields({ value: { from, value }, onChange, sources = KEY_SOURCES, hint }: KeyFieldsProps) {
  const set = (text: string) => onChange({ from, value: text })
  return (
    <div className="stack-small">
      <Segments
        label="Where the key comes from"
        value={from}
        options={sources.map((source) => ({ value: source, label: NAMES[source] }))}
        onChange={(source) => onChange({ from: source as KeyDraft['from'], value: '' })}
      />
      {from === 'key' && (
        <TextField
          label="API key"
          type="password"
          autoComplete="off"
          value={value}
          onChange={set}
          help="Written into the file of the configuration, and never shown again."
        />
      )}
      {from === 'variable' && (
        <TextField
          label="Variable"
          value={value}
          onChange={set}
          placeholder="ACME_API_KEY"
          help="Of the gateway's environment. admin.config_variables of the file must name it."
        />
      )}
      {from === 'file' && (
        <TextField
          label="File"
          value={value}
          onChange={set}
          placeholder="/run/secrets/acme"
          help="With only the key in it; read again when it changes."
        />
      )}
      {from === 'none' && <p className="soft">{hint ?? 'The provider is called without a key.'}</p>}
    </div>
  )
}
