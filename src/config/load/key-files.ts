/** Puts the content of each `key_file` of the configuration into the `key` beside it. */
import { isRecord } from '../../kit/json.ts'
import type { SecretFile } from '../check/secret-places.ts'
import type { Path, YamlText } from './read-yaml.ts'

/** `secretAt`: as for the references in the text. */
export function withKeyFiles(yaml: YamlText, secretAt: (file: SecretFile) => string): YamlText {
  const { value } = yaml
  if (!isRecord(value) || !isRecord(value.providers)) return yaml
  const troubles = [...yaml.troubles]

  function withKey(entry: unknown, path: Path): unknown {
    if (!isRecord(entry) || typeof entry.key_file !== 'string') return entry
    try {
      if ('key' in entry) throw new Error('`key` stands beside it; remove one of the two')
      const key = secretAt({ path: [...path, 'key'], file: entry.key_file })
      return { ...entry, key }
    } catch (error) {
      const at = [...path, 'key_file']
      const message = `found ${JSON.stringify(entry.key_file)}, which cannot be used: ${(error as Error).message}`
      troubles.push({ ...yaml.placeOf(at, 'value'), path: at, message })
      return { ...entry, key: undefined }
    }
  }

  const providers = Object.entries(value.providers).map(([id, provider]) => {
    const path = ['providers', id]
    const whole = withKey(provider, path)
    if (!isRecord(whole) || !Array.isArray(whole.keys)) return [id, whole]
    return [id, { ...whole, keys: whole.keys.map((entry, index) => withKey(entry, [...path, 'keys', index])) }]
  })
  return { ...yaml, value: { ...value, providers: Object.fromEntries(providers) }, troubles }
}
