/** Stores files in a bucket of any S3-compatible service. */
import type { OutputSettings } from '../config/config.ts'
import { servedAs } from '../kit/file-type.ts'
import { type ByteRange, checkKey, type FileStore } from './outputs.ts'

type BucketSettings = NonNullable<OutputSettings['s3']>

/** In memory once per upload. S3 accepts at most 10,000 parts of at least 5 MiB: files up to 78 GiB. */
const PART_BYTES = 8 * 1024 * 1024
/** A read link is used at once, and a long download continues after it expires. */
const READ_SECONDS = 900

export function createBucket({ s3 }: { s3: BucketSettings }): FileStore {
  const { bucket, region = 'us-east-1', endpoint, access_key_id, secret_access_key, prefix = '' } = s3
  const client = new Bun.S3Client({
    bucket,
    region,
    ...(endpoint === undefined ? {} : { endpoint }),
    // Without them the runtime uses AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
    ...(access_key_id === undefined ? {} : { accessKeyId: access_key_id }),
    ...(secret_access_key === undefined ? {} : { secretAccessKey: secret_access_key }),
  })
  const nameOf = (key: string) => `${prefix}${checkKey(key)}`

  return {
    async open(key) {
      const name = nameOf(key)
      const found = await unlessAbsent(client.stat(name))
      if (!found) return undefined
      return {
        content_type: found.type || 'application/octet-stream',
        bytes: found.size,
        version: found.etag.replace(/^W\/|"/g, ''),
        body: (range) => readObject(client.presign(name, { method: 'GET', expiresIn: READ_SECONDS }), range),
      }
    },
    /** In parts, each sent before the next one is read. An interrupted upload is aborted and never visible. */
    async write(key, { content_type, body }, signal) {
      const name = nameOf(key)
      const served = servedAs(content_type)
      signal.throwIfAborted()
      const written = client.write(name, new Response(abortableBody(body, signal)), {
        // For other readers of the bucket: a browser gets the same headers as from the gateway.
        type: served.content_type,
        contentDisposition: served.disposition,
        partSize: PART_BYTES,
        queueSize: 1,
        retry: 3,
      })
      return { bytes: await orAborted(written, signal) }
    },
    async remove(key) {
      await unlessAbsent(client.delete(nameOf(key)))
    },
  }
}

/** The body, which fails when the signal is aborted, so that the upload fails too. */
function abortableBody(body: ReadableStream<Uint8Array>, signal: AbortSignal): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read()
        if (signal.aborted) {
          await reader.cancel(signal.reason)
          controller.error(signal.reason)
        } else if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

/** Rejects at once when the signal is aborted, even while a part is being sent. */
function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason)
    signal.addEventListener('abort', leave, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave))
  })
}

/** Requested when it is first read; canceling the stream closes the connection. */
function readObject(url: string, range: ByteRange | undefined): ReadableStream<Uint8Array> {
  const ending = new AbortController()
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        reader ??= await startReading(url, range, ending.signal)
        const { done, value } = await reader.read()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel(reason) {
        ending.abort(reason)
      },
    },
    { highWaterMark: 0 },
  )
}

async function startReading(url: string, range: ByteRange | undefined, signal: AbortSignal) {
  const headers: Record<string, string> = { 'accept-encoding': 'identity' }
  if (range) headers.range = `bytes=${range.first}-${range.last}`
  // Bun would give up by itself after five minutes, and a client may read slowly.
  const response = await fetch(url, { headers, signal, timeout: false, decompress: false } as RequestInit)
  if (response.status !== (range ? 206 : 200) || !response.body) {
    await response.body?.cancel()
    throw new Error(`The bucket returned HTTP ${response.status} instead of a file.`)
  }
  return response.body.getReader()
}

async function unlessAbsent<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (thrown) {
    const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined
    if (code === 'NoSuchKey' || code === 'NotFound') return undefined
    throw thrown
  }
}
