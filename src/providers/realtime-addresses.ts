/** Where the realtime API of a provider is, by its kind. */
import type { ProviderKind } from '../config/schema/provider-kinds.ts'
import { contentgenSettings } from './contentgen-compat/contentgen-settings.ts'
import { asWebSocket, type RealtimeAddress } from './realtime-connection.ts'
import { type AdapterParts, settingsOf } from './settings.ts'

/** Google's own path, by the version of the API. */
export const geminiLivePath = (version: string): string =>
  `/ws/google.ai.generativelanguage.${version}.GenerativeService.BidiGenerateContent`

/** Undefined: the kind has none. */
export function realtimeAddress(kind: ProviderKind, parts: AdapterParts): RealtimeAddress | undefined {
  if (kind === 'chatcompat' || kind === 'responses-compat') {
    const settings = settingsOf(parts)
    const url = asWebSocket(settings.base_url)
    return { api: 'openai', ...settings, urlOf: (model) => `${url}/realtime?model=${encodeURIComponent(model)}` }
  }
  if (kind === 'contentgen-compat') {
    const settings = contentgenSettings(parts)
    const url = asWebSocket(new URL(settings.base_url).origin) + geminiLivePath('v1beta')
    // Vertex AI has another API.
    return settings.cloud ? undefined : { api: 'gemini', ...settings, urlOf: () => url }
  }
  return kind === 'azure' ? azureAddress(parts) : undefined
}

/** https://learn.microsoft.com/azure/ai-foundry/openai/how-to/realtime-audio-websockets */
function azureAddress(parts: AdapterParts): RealtimeAddress {
  const { config, environment = {} } = parts
  const { resourceName = environment.AZURE_RESOURCE_NAME, apiVersion = 'v1' } = config.options ?? {}
  const { key = environment.AZURE_API_KEY ?? environment.AZURE_OPENAI_API_KEY, preset: _, ...rest } = config
  const written = rest.base_url ?? `https://${resourceName}.openai.azure.com/openai`
  const settings = settingsOf({ ...parts, config: { ...rest, base_url: written.replace(/\/v1\/?$/, '') } })
  const url = asWebSocket(settings.base_url)
  return {
    api: 'openai',
    ...settings,
    headers: { ...(key === undefined ? {} : { 'api-key': key }), ...settings.headers },
    urlOf: (model) =>
      apiVersion === 'v1'
        ? `${url}/v1/realtime?model=${encodeURIComponent(model)}`
        : `${url}/realtime?api-version=${encodeURIComponent(String(apiVersion))}&deployment=${encodeURIComponent(model)}`,
  }
}
