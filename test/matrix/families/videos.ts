/** The matrix of videos: its clients and its calls. */
import { expect } from 'bun:test'
import { sniff } from '../../../src/kit/sniff.ts'
import { gatehouseVideos } from './clients/gatehouse-videos.ts'
import { openaiVideos } from './clients/openai-videos.ts'
import type { Family, FamilyCell, FamilyColumn } from './family.ts'
import { VIDEO_KINDS } from './order-kinds.ts'
import { FAILING } from './order-wire.ts'
import { refusalColumns } from './refusals.ts'
import type { Video, VideosClient } from './types.ts'

const PROMPT = 'A red kite over the sea.'

const film = ({ target }: FamilyCell<VideosClient>) => ({ model: target.model, prompt: `${PROMPT}\n@sandbox quick=1` })

function expectFilm(video: Video | undefined): void {
  expect([sniff(video?.bytes ?? new Uint8Array()), video?.media_type]).toEqual(['video/mp4', 'video/mp4'])
}

const COLUMNS: Omit<FamilyColumn<VideosClient>, 'group'>[] = [
  { name: 'create, wait, download', check: async (cell) => expectFilm(await cell.client.film(film(cell))) },
  {
    name: 'create in one client, fetch in another',
    has: ({ later }) => later !== undefined,
    check: async (cell) => expectFilm(await cell.client.later?.(film(cell))),
  },
  {
    name: 'failed task',
    check: async ({ client, target }) =>
      expect(await client.failure({ model: target.model, prompt: `${PROMPT}\n${FAILING}` })).toBe(
        'content_policy_violation',
      ),
  },
  {
    name: 'task rejected by the provider',
    check: async ({ client, target }) =>
      expect(await client.failure({ model: target.model, prompt: `${PROMPT}\n@sandbox status=400` })).toBe(
        'invalid_input',
      ),
  },
  {
    name: 'list and delete',
    has: ({ remove }) => remove !== undefined,
    async check(cell) {
      const { isListed, gone } = (await cell.client.remove?.(film(cell))) ?? {}
      expect(isListed).toBe(true)
      expect(cell.client.fault(gone, 404)).toMatchObject({ status: 404, is_own_class: true })
    },
  },
]

const GROUP = 'Videos'

export const VIDEOS: Family<VideosClient> = {
  family: 'video-generation',
  sandbox: 'sandbox/text-to-video',
  kinds: VIDEO_KINDS,
  rows: [...openaiVideos, gatehouseVideos],
  columns: [
    ...COLUMNS.map((column) => ({ ...column, group: GROUP })),
    ...refusalColumns<VideosClient>({
      group: GROUP,
      send: (client, model) => client.film({ model, prompt: PROMPT }),
      wrong: {
        send: ({ client, target }) => client.film({ model: target.model, prompt: PROMPT, seconds: 7 }),
        pattern: /seconds|duration/,
        param: 'seconds',
      },
    }),
  ],
}
