/** The output files of a task: their description, and their bytes. */
import { APICallError } from '@ai-sdk/provider'
import { fetchUntrustedUrl, isSameOrigin, readResponseWithSizeLimit, validateDownloadUrl } from '@ai-sdk/provider-utils'
import type { Connection } from './settings.ts'

type DescribedFile = { mediaType: string | undefined; filename: string | undefined }
export type Downloaded = DescribedFile & { data: Uint8Array }

/** A slow description must not delay the result. */
const DESCRIBE_MILLISECONDS = 10_000

/** The description of a link by the gateway; for other URLs, and without a response, by the extension of the URL. */
export async function describe(connection: Connection, url: string): Promise<DescribedFile> {
  if (isOnGateway(connection, url)) {
    try {
      const signal = AbortSignal.timeout(DESCRIBE_MILLISECONDS)
      const response = await connection.fetch(url, { method: 'HEAD', signal, redirect: 'manual' })
      if (response.ok) return namesIn(response)
    } catch {
      // Only the description is missing: a download will report the error.
    }
  }
  const filename = URL.canParse(url) ? new URL(url).pathname.split('/').at(-1) : undefined
  const extension = extensionOf(filename)
  return { mediaType: MEDIA_TYPES[extension], filename: extension === '' ? undefined : filename }
}

function namesIn({ headers }: Response): DescribedFile {
  const type = headers.get('content-type')?.split(';')[0]?.trim().toLowerCase()
  return {
    mediaType: type === '' || type === 'application/octet-stream' ? undefined : type,
    filename: /filename="([^"]+)"/.exec(headers.get('content-disposition') ?? '')?.[1],
  }
}

/** Links need no token. URLs in private networks are refused, except the gateway's own. */
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

const isOnGateway = (connection: Connection, url: string): boolean =>
  URL.canParse(url) && isSameOrigin(url, connection.url(''))

/** Whether the AI SDK itself would refuse to download it, although it is on the gateway. */
export function needsOwnDownload(connection: Connection, url: string): boolean {
  if (!isOnGateway(connection, url)) return false
  try {
    validateDownloadUrl(url)
    return false
  } catch {
    return true
  }
}

export const extensionOf = (filename: string | undefined): string =>
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
