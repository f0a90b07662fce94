/** Parts shared by the list of models and the page of one model. */
import type { AdminModel, ModelPrice, Target } from '../../api/types.ts'
import { money, shortCount } from '../../lib/format.ts'
import { Badge, type Tone } from '../../ui/display.tsx'

const STATUS_TONES: Record<string, Tone> = { active: 'ok', deprecated: 'warn', retired: 'danger' }

export function ModelStatus({ model }: { model: Pick<AdminModel, 'status' | 'is_disabled'> }) {
  if (model.is_disabled) return <Badge tone="danger">taken out</Badge>
  return <Badge tone={STATUS_TONES[model.status] ?? 'plain'}>{model.status}</Badge>
}

const isHealthy = ({ health }: Target): boolean => health.state === 'available'

/** How many of the targets answer now. */
export function TargetHealth({ targets }: { targets: Target[] }) {
  const healthy = targets.filter(isHealthy).length
  const tone = healthy === targets.length ? 'ok' : healthy === 0 ? 'danger' : 'warn'
  if (targets.length === 0) return <Badge tone="danger">no target</Badge>
  return <Badge tone={tone}>{healthy === targets.length ? 'healthy' : `${healthy} of ${targets.length} healthy`}</Badge>
}

export const tokens = (value: number | null): string => (value === null ? '–' : shortCount(value))

/** The price in short: of a million tokens, or of a piece. */
export function priceText(price: ModelPrice | null): string {
  if (!price) return 'unknown'
  const { input, output, image, video, video_second, three_d, speech_characters, audio_minute, request } = price
  if (input !== null && output !== null && (input > 0 || output > 0)) return `${money(input)} in · ${money(output)} out`
  if (image !== null) return `${money(image)} an image`
  if (video_second !== null) return `${money(video_second)} a second`
  if (video !== null) return `${money(video)} a video`
  if (three_d !== null) return `${money(three_d)} a model`
  if (speech_characters !== null) return `${money(speech_characters)} a million characters`
  if (audio_minute !== null) return `${money(audio_minute)} a minute`
  if (input !== null && input > 0) return `${money(input)} in`
  if (request !== null) return `${money(request)} a request`
  return input === 0 ? 'free' : 'unknown'
}
