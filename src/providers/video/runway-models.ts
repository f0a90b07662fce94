/** Rows of what the models behind Runway's API accept: each has a closed schema (types of @runwayml/sdk 4.20). */
import { matchesGlob } from '../../kit/glob.ts'

/** How the frame is encoded: as pixels, as a ratio and a resolution, as a resolution alone, as `auto_<resolution>`. */
type Frame = 'pixels' | 'named' | 'resolution' | 'auto'

export type RunwayModel = {
  fields: ('last_image' | 'images' | 'negative_prompt' | 'seed')[]
  /** Whether sound can be switched, is always or never generated; `ask`: unknown, so it is sent when it is requested. */
  sound: 'switch' | 'always' | 'none' | 'ask'
  /** Default: pixels. */
  text_frame?: Frame
  image_frame?: Frame
  /** Pixels of sizes that do not follow from the shorter side and the ratio. */
  sides?: Record<string, string>
}

const SQUARE = { '720p 1:1': '960:960', '1080p 1:1': '1440:1440' }
const GEN = { ...SQUARE, '720p 4:3': '1104:832', '720p 3:4': '832:1104', '720p 21:9': '1584:672' }
const WAN = {
  ...SQUARE,
  '480p 16:9': '832:480',
  '480p 9:16': '480:832',
  '480p 4:3': '720:544',
  '480p 3:4': '544:720',
  '480p 1:1': '624:624',
  '720p 4:3': '1104:832',
  '720p 3:4': '832:1104',
  '1080p 4:3': '1648:1248',
  '1080p 3:4': '1248:1648',
}
const SEEDANCE = {
  ...SQUARE,
  '480p 16:9': '864:496',
  '480p 9:16': '496:864',
  '480p 4:3': '752:560',
  '480p 3:4': '560:752',
  '480p 1:1': '640:640',
  '480p 21:9': '992:432',
  '720p 4:3': '1112:834',
  '720p 3:4': '834:1112',
  '720p 21:9': '1470:630',
  '1080p 4:3': '1664:1248',
  '1080p 3:4': '1248:1664',
  '1080p 21:9': '2206:946',
  '4k 1:1': '3840:3840',
  '4k 4:3': '3840:2880',
  '4k 3:4': '2880:3840',
  '4k 21:9': '3840:1646',
}
const SEEDANCE_2_5 = { ...SEEDANCE, '480p 16:9': '854:480', '480p 9:16': '480:854' }
const HORSE = {
  ...SQUARE,
  '720p 4:3': '1108:832',
  '720p 3:4': '832:1108',
  '1080p 4:3': '1662:1248',
  '1080p 3:4': '1248:1662',
}

/** The first matching row counts. */
const MODELS: [string, RunwayModel][] = [
  // Its own sizes, 1280x768 and 768x1280, are in the model's row.
  ['gen3a*', { fields: ['last_image', 'seed'], sound: 'none' }],
  ['gen*', { fields: ['seed'], sound: 'none', sides: GEN }],
  ['veo3.1*', { fields: ['last_image', 'negative_prompt', 'seed'], sound: 'switch' }],
  ['veo3', { fields: [], sound: 'always' }],
  ['seedance2_5', { fields: ['last_image', 'images', 'seed'], sound: 'switch', sides: SEEDANCE_2_5 }],
  ['seedance*', { fields: ['last_image', 'images', 'seed'], sound: 'switch', sides: SEEDANCE }],
  ['wan3*', { fields: ['last_image', 'images'], sound: 'switch', image_frame: 'auto', sides: WAN }],
  ['happyhorse*', { fields: [], sound: 'always', image_frame: 'resolution', sides: HORSE }],
  ['hailuo3', { fields: ['last_image', 'images'], sound: 'always', text_frame: 'named', image_frame: 'named' }],
  ['grok*', { fields: ['images'], sound: 'always', text_frame: 'named', image_frame: 'resolution' }],
  ['gemini_omni*', { fields: ['images'], sound: 'always' }],
  ['h3*', { fields: ['last_image', 'seed'], sound: 'none', text_frame: 'resolution', image_frame: 'resolution' }],
]

/** For an unknown model every field is sent: Runway decides. */
const UNKNOWN: RunwayModel = { fields: ['last_image', 'images', 'negative_prompt', 'seed'], sound: 'ask' }

export const runwayModel = (model: string): RunwayModel =>
  MODELS.find(([glob]) => matchesGlob(glob, model))?.[1] ?? UNKNOWN
