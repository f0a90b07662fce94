/** What the models behind Runway's API take, as rows of data: each has a closed schema (types of @runwayml/sdk 4.20). */
import { matchesGlob } from '../../kit/glob.ts'

/** How the picture is asked for: as pixels, as a ratio and a resolution, as a resolution alone, as `auto_<resolution>`. */
type Frame = 'pixels' | 'words' | 'resolution' | 'auto'

export type RunwayModel = {
  takes: ('last_image' | 'images' | 'negative_prompt' | 'seed')[]
  /** Whether sound can be switched, comes always, or never; or is asked for when it is wanted, since nobody knows. */
  sound: 'switch' | 'always' | 'none' | 'ask'
  /** Default: pixels. */
  text_frame?: Frame
  image_frame?: Frame
  /** Pixels of sizes that are not simply the shorter side and the proportion. */
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

/** The first that fits counts. */
const MODELS: [string, RunwayModel][] = [
  // Its own sizes, 1280x768 and 768x1280, are named in the model's row.
  ['gen3a*', { takes: ['last_image', 'seed'], sound: 'none' }],
  ['gen*', { takes: ['seed'], sound: 'none', sides: GEN }],
  ['veo3.1*', { takes: ['last_image', 'negative_prompt', 'seed'], sound: 'switch' }],
  ['veo3', { takes: [], sound: 'always' }],
  ['seedance2_5', { takes: ['last_image', 'images', 'seed'], sound: 'switch', sides: SEEDANCE_2_5 }],
  ['seedance*', { takes: ['last_image', 'images', 'seed'], sound: 'switch', sides: SEEDANCE }],
  ['wan3*', { takes: ['last_image', 'images'], sound: 'switch', image_frame: 'auto', sides: WAN }],
  ['happyhorse*', { takes: [], sound: 'always', image_frame: 'resolution', sides: HORSE }],
  ['hailuo3', { takes: ['last_image', 'images'], sound: 'always', text_frame: 'words', image_frame: 'words' }],
  ['grok*', { takes: ['images'], sound: 'always', text_frame: 'words', image_frame: 'resolution' }],
  ['gemini_omni*', { takes: ['images'], sound: 'always' }],
  ['h3*', { takes: ['last_image', 'seed'], sound: 'none', text_frame: 'resolution', image_frame: 'resolution' }],
]

/** A model that is not known yet is asked for what was asked for: the vendor judges. */
const UNKNOWN: RunwayModel = { takes: ['last_image', 'images', 'negative_prompt', 'seed'], sound: 'ask' }

export const runwayModel = (model: string): RunwayModel =>
  MODELS.find(([glob]) => matchesGlob(glob, model))?.[1] ?? UNKNOWN
