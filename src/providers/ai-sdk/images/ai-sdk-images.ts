/** One adapter for every vendor of images that has an AI SDK package with `doGenerate`. */
import { GatewayError } from '../../../spec/error.ts'
import type { ImageUsage } from '../../../spec/image-request.ts'
import { codeInDoubt } from '../../orders/acceptance.ts'
import { throwNeverSent } from '../../orders/order-error.ts'
import type { ImageCall, ImageProvider } from '../../provider.ts'
import { asFetch } from '../../upstream/transport-fetch.ts'
import type { Connection } from '../connection.ts'
import { type ImageOptions, optionsOf } from './call-options.ts'
import { createImageErrors } from './image-errors.ts'
import type { ImageFamily, ImageModel } from './image-family.ts'
import { type Generated, observedFetch } from './observed-fetch.ts'

/** For one request of several images, at a vendor that makes fewer in one call. */
const CONCURRENT_CALLS = 4

export function createAiSdkImages(connection: Connection<ImageFamily, ImageModel>): ImageProvider {
  const { id, config, clock, log, media, vendor } = connection
  const errors = createImageErrors({ id, clock, log, vendor })

  async function open({ model, request_id }: ImageCall, signal: AbortSignal) {
    const { queries } = vendor
    const wired = await connection.fetchFor({ model, signal, request_id, orders: true, queries })
    const observed = observedFetch({ ...wired, connection, errors, model })
    return { model: await connection.model(model, observed.fetch), observed }
  }

  /** One call of the package's method: the vendor's own response is preferred to what the package makes of it. */
  async function generateOnce(
    call: ImageCall,
    options: ImageOptions,
    n: number,
    signal: AbortSignal,
  ): Promise<Generated> {
    const { model, observed } = await open(call, signal).catch(throwNeverSent)
    try {
      const result = await model.doGenerate({ ...options, n, abortSignal: signal })
      const generated = observed.generated()
      if (generated) return generated
      errors.logIgnored(result.warnings, call.model)
      return { images: result.images.map((image) => ({ base64: base64Of(image) })) }
    } catch (thrown) {
      signal.throwIfAborted()
      const generated = observed.generated()
      if (generated) return generated
      throw errors.logged(observed.errorFor(thrown), call.model)
    }
  }

  /** How many images the package makes in one call of this model. */
  async function maxImagesOf(name: string): Promise<number> {
    const never = asFetch(() => Promise.reject(new Error('Nothing may be sent.')))
    const { maxImagesPerCall: max } = await connection.model(name, never)
    const value: unknown = typeof max === 'function' ? await max({ modelId: name }) : max
    return typeof value === 'number' && value >= 1 ? value : 1
  }

  const generate: ImageProvider['generate'] = async (call, signal) => {
    const { model, request } = call
    const options = await optionsOf({ order: request, vendor, model, config, upstream: id, media, signal })
    const max = vendor.maxImages?.(model) ?? (await maxImagesOf(model))
    const counts: number[] = []
    for (let left = request.n; left > 0; left -= max) counts.push(Math.min(left, max))
    const settled: PromiseSettledResult<Generated>[] = []
    for (let at = 0; at < counts.length; at += CONCURRENT_CALLS) {
      const calls = counts
        .slice(at, at + CONCURRENT_CALLS)
        .map((n, index) => generateOnce(call, withSeed(options, at + index), n, signal))
      settled.push(...(await Promise.allSettled(calls)))
      // The next call would be refused for the same reason.
      if (settled.some(({ status }) => status === 'rejected')) break
    }
    return joined(settled)
  }

  return { operations: vendor.operations ?? ['generate', 'edit'], generate }
}

/** The same seed twice would be the same image twice. */
const withSeed = (options: ImageOptions, index: number): ImageOptions =>
  options.seed === undefined ? options : { ...options, seed: (options.seed + index) % 4_294_967_296 }

/** In their order. One failure fails the request; only where all calls were refused, nothing was accepted. */
function joined(settled: PromiseSettledResult<Generated>[]): Generated {
  const failures = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
  const [failure] = failures
  if (failures.length === 0) {
    const all = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    const usage = all.map((one) => one.usage).reduce(sum, undefined)
    return { images: all.flatMap(({ images }) => images), ...(usage ? { usage } : {}) }
  }
  if (!(failure instanceof GatewayError) || settled.length === 1) throw failure
  const inDoubt = failures.find((one) => one instanceof GatewayError && one.detail.accepted !== 'no')
  if (inDoubt || failures.length === settled.length) throw inDoubt ?? failure
  const { accepted: _, ...detail } = failure.detail
  const fail_code = failure.code === 'content_policy_violation' ? 'content_policy_violation' : 'upstream_error'
  const message = `${failure.message} Other images of the request were generated, and may have been charged.`
  throw new GatewayError(codeInDoubt(failure), message, { fail_code, ...detail, retry: false })
}

function sum(left: ImageUsage | undefined, right: ImageUsage | undefined): ImageUsage | undefined {
  if (!left || !right) return left ?? right
  return {
    input_tokens: left.input_tokens + right.input_tokens,
    output_tokens: left.output_tokens + right.output_tokens,
    total_tokens: left.total_tokens + right.total_tokens,
  }
}

const base64Of = (image: string | Uint8Array): string =>
  typeof image === 'string' ? image : Buffer.from(image).toString('base64')
