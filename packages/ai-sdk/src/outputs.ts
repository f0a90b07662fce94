/** Files that a task has made: what they are, and their bytes. */
import { APICallError } from '@ai-sdk/provider'
import { fetchUntrustedUrl, isSameOrigin, readResponseWithSizeLimit, validateDownloadUrl } from '@ai-sdk/provider-utils'
import type { Connection } from './settings.ts'

export type Made = { url: string; mediaType: string | undefined; filename: string | undefined }
export type Downloaded = { data: Uint8Array; mediaType: string | undefined; filename: string | undefined }

/** Learning what a file is must not hold up handing it out. */
const DESCRIBE_MILLISECONDS = 10_000

/** What the gateway says of one of its links; of an address elsewhere, or when it says nothing, what the address says. */
export async function describe(connection: Connection, url: string): Promise<Made> {
  if (isOurs(connection, url)) {
    try {
      const signal = AbortSignal.timeout(DESCRIBE_MILLISECONDS)
      const response = await connection.fetch(url, { method: 'HEAD', signal, redirect: 'manual' })
      if (response.ok) return { url, ...namesIn(response) }
    } catch {
      // Only the description is missing: whoever downloads it will see what is wrong.
    }
  }
  const filename = URL.canParse(url) ? new URL(url).pathname.split('/').at(-1) : undefined
  return { url, mediaType: MEDIA_TYPES[endingOf(filename)], filename: endingOf(filename) === '' ? undefined : filename }
}

function namesIn({ headers }: Response): Pick<Made, 'mediaType' | 'filename'> {
  const type = headers.get('content-type')?.split(';')[0]?.trim().toLowerCase()
  return {
    mediaType: type === '' || type === 'application/octet-stream' ? undefined : type,
    filename: /filename="([^"]+)"/.exec(headers.get('content-disposition') ?? '')?.[1],
  }
}

/** Links need no token. Addresses in private networks are refused, but for the gateway's own. */
export async function download(
  connection: Connection,
  { url, abortSignal }: { url: string; abortSignal?: AbortSignal | undefined },
): Promise<Downloaded> {
  const response = await fetchUntrustedUrl({
    url,
    fetch: connection.fetch,
    trustedOrigin: connection.url(''),
    ...(abortSignal === undefined ? {} : { abortSignal }),
  })
  if (!response.ok) {
    await response.body?.cancel()
    throw new APICallError({
      message: `The file could not be downloaded: ${response.status} ${response.statusText}`.trim(),
      url,
      requestBodyValues: {},
      statusCode: response.status,
    })
  }
  return { data: await readResponseWithSizeLimit({ response, url }), ...namesIn(response) }
}

const isOurs = (connection: Connection, url: string): boolean =>
  URL.canParse(url) && isSameOrigin(url, connection.url(''))

/** Whether the AI SDK itself would refuse to download it, though it lies at the gateway that was asked. */
export function needsOurHelp(connection: Connection, url: string): boolean {
  if (!isOurs(connection, url)) return false
  try {
    validateDownloadUrl(url)
    return false
  } catch {
    return true
  }
}

export const endingOf = (filename: string | undefined): string =>
  /\.([a-z\d]{1,5})$/i.exec(filename ?? '')?.[1]?.toLowerCase() ?? ''

const MEDIA_TYPES: Record<string, string> = {
  mp4: 'video/mp4',
  webm: 'video/webm',
  mov: 'video/quicktime',
  glb: 'model/gltf-binary',
  obj: 'model/obj',
  mtl: 'model/mtl',
  fbx: 'application/vnd.autodesk.fbx',
  usdz: 'model/vnd.usdz+zip',
  stl: 'model/stl',
  zip: 'application/zip',
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
}
