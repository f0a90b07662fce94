/** Videos with the `openai` package; the same code for both majors. */
import type OpenAI from 'openai'
import type { FamilyRow, Gateway } from '../family.ts'
import type { Video, VideoOrder, VideosClient } from '../types.ts'
import { OPENAI_MAJORS, openaiFamilyFault, openaiOf } from './openai.ts'

/** The number of polls, each of which the gateway holds until the status changes. */
const MOST_QUESTIONS = 20

function clientOf(Sdk: typeof OpenAI, gateway: Gateway): VideosClient {
  const { videos } = openaiOf(Sdk, gateway)
  // Its types know only the lengths of the vendor's own models.
  const create = ({ seconds, ...params }: VideoOrder) =>
    videos.create({ ...params, ...(seconds ? { seconds: String(seconds) as OpenAI.VideoSeconds } : {}) })

  async function ended({ id }: OpenAI.Video): Promise<OpenAI.Video> {
    for (let turn = 0; turn < MOST_QUESTIONS; turn++) {
      const video = await videos.retrieve(id, { query: { wait: 10 } })
      if (video.status === 'completed' || video.status === 'failed') return video
    }
    throw new Error('It never ended.')
  }

  async function generated(params: VideoOrder): Promise<OpenAI.Video> {
    const video = await ended(await create(params))
    if (video.status !== 'completed') throw new Error(`It failed: ${video.error?.message}`)
    return video
  }

  return {
    async film(params): Promise<Video> {
      const { id } = await generated(params)
      const file = await videos.downloadContent(id)
      return { bytes: new Uint8Array(await file.arrayBuffer()), media_type: file.headers.get('content-type') }
    },
    failure: async (params) => (await ended(await create(params))).error?.code,
    async remove(params) {
      const { id } = await generated(params)
      let isListed = false
      for await (const one of videos.list()) isListed ||= one.id === id
      await videos.delete(id)
      return { isListed, gone: await videos.retrieve(id).catch((error: unknown) => error) }
    },
    fault: (error, status) => openaiFamilyFault(Sdk, error, status),
  }
}

export const openaiVideos = OPENAI_MAJORS.map(
  ([name, packageName, Sdk]): FamilyRow<VideosClient> => ({
    name: `${name}, videos`,
    packages: [packageName],
    base: '/v1',
    dialect: 'chatcompat-video',
    connect: (gateway) => clientOf(Sdk, gateway),
  }),
)
