/** One adapter for every vendor of images that has an AI SDK package with `doGenerate`. */
import { createGuardedFetch } from '../../../kit/guarded-fetch.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { ImageUsage } from '../../../spec/image-request.ts'
import { createMedia } from '../../media.ts'
import { codeInDoubt } from '../../orders/acceptance.ts'
import type { GeneratedImage, ImageCall, ImageProvider, Provider } from '../../provider.ts'
import { neverSent } from '../../upstream/transport-failure.ts'
import { createTransportFetch } from '../../upstream/transport-fetch.ts'
import { accountOf, isOwn, moved } from '../account.ts'
import type { AiSdkParts } from '../vendor.ts'
import { createImageFaults } from './fault.ts'
import type { ImageModel, ImageVendor } from './vendor.ts'
import { type WantedImages, wantedImages } from './wanted.ts'
import { watched } from './watched.ts'

/** Packages look into the process's environment for a key when they are given none. */
const UNUSED_KEY = 'gatehouse-has-no-key'
/** Of one request for several images at a vendor that makes fewer a call. */
const CALLS_AT_A_TIME = 4

type Made = { images: GeneratedImage[]; usage?: ImageUsage }

/** Throws an Error that names the provider when its configuration cannot work. */
export function aiSdkImages(parts: AiSdkParts, vendor: ImageVendor): Required<Pick<Provider, 'images'>> {
  const { id, config, transport, clock, log } = parts
  const media = parts.media ?? createMedia({ guardedFetch: createGuardedFetch({ clock }) })
  const given = config.base_url === undefined ? {} : { base_url: vendor.imageUrl?.(config.base_url) ?? config.base_url }
  const account = accountOf({ ...parts, config: { ...config, ...given } }, vendor)
  const key = account.key || UNUSED_KEY
  const faults = createImageFaults({ provider: id, vendor, clock })

  /** The model of one call, and what it does on the wire. */
  async function open({ model, request_id }: ImageCall, signal: AbortSignal) {
    const authorization = await vendor.authorize?.(signal)
    const { fetch, wire } = createTransportFetch({
      provider: id,
      transport,
      timeouts: account.timeouts,
      signal,
      isOrder: true,
      ...(vendor.asks ? { repeatablePaths: vendor.asks } : {}),
      route(asked) {
        const { url, headers } = vendor.send?.(asked, model) ?? asked
        const target = moved(url, vendor.home, account.base_url)
        if (!isOwn(target, account, vendor)) return undefined
        const own = { 'x-request-id': request_id, ...account.headers, ...authorization }
        return { url: target, headers: { ...presented(headers), ...own } }
      },
    })
    const watch = watched({ fetch, wire, vendor, account, faults, model })
    const make = await vendor.load({ key, fetch: watch.fetch })
    return { model: make(model), watch }
  }

  /** One call of the package's method: what the vendor's own answer says is worth more than what the package makes of it. */
  async function one(call: ImageCall, wanted: WantedImages, n: number, signal: AbortSignal): Promise<Made> {
    const { model, watch } = await open(call, signal).catch((thrown: unknown) => {
      throw thrown instanceof GatewayError ? neverSent(thrown) : thrown
    })
    try {
      const generated = await model.doGenerate({ ...wanted, n, abortSignal: signal })
      const said = watch.made()
      if (said) return said
      for (const warning of generated.warnings) {
        const feature = 'feature' in warning ? warning.feature : warning.type
        log.debug('upstream request changed by its package', { provider: id, model: call.model, feature })
      }
      return { images: generated.images.map((image) => ({ base64: base64Of(image) })) }
    } catch (thrown) {
      signal.throwIfAborted()
      const said = watch.made()
      if (said) return said
      throw noted(watch.fault(thrown), call.model)
    }
  }

  function noted(error: GatewayError, model: string): GatewayError {
    if (error.status >= 500 && error.code !== 'internal_error') {
      const { upstream_status } = error.detail
      log.warn('upstream failed', { provider: id, model, error: error.code, upstream_status })
    }
    return error
  }

  /** How many images the package makes in one call of this model. */
  async function mostOf(name: string): Promise<number> {
    const never = () => Promise.reject(new Error('Nothing is asked.'))
    const model = (await vendor.load({ key, fetch: Object.assign(never, { preconnect: () => {} }) }))(name)
    const most = await mostIn(model, name)
    return typeof most === 'number' && most >= 1 ? most : 1
  }

  const make: ImageProvider['generate'] = async (call, signal) => {
    const { model, request } = call
    const wanted = await wantedImages({ order: request, vendor, model, config, upstream: id, media, signal })
    const most = vendor.most?.(model) ?? (await mostOf(model))
    const shares: number[] = []
    for (let left = request.n; left > 0; left -= most) shares.push(Math.min(left, most))
    const settled: PromiseSettledResult<Made>[] = []
    for (let at = 0; at < shares.length; at += CALLS_AT_A_TIME) {
      const turn = shares.slice(at, at + CALLS_AT_A_TIME)
      settled.push(
        ...(await Promise.allSettled(turn.map((n, index) => one(call, seeded(wanted, at + index), n, signal)))),
      )
      // What one call is refused for, the next would be as well.
      if (settled.some(({ status }) => status === 'rejected')) break
    }
    return joined(settled)
  }

  return { images: { operations: vendor.operations ?? ['generate', 'edit'], generate: make } }
}

/** The same seed twice would be the same image twice. */
const seeded = (wanted: WantedImages, index: number): WantedImages =>
  wanted.seed === undefined ? wanted : { ...wanted, seed: (wanted.seed + index) % 4_294_967_296 }

/** In their order. With one failure all have failed; only where all were refused, nothing was taken. */
function joined(settled: PromiseSettledResult<Made>[]): Made {
  const failures = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
  const [failure] = failures
  if (failures.length === 0) {
    const all = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    const usage = all.map((one) => one.usage).reduce(sum, undefined)
    return { images: all.flatMap(({ images }) => images), ...(usage ? { usage } : {}) }
  }
  if (!(failure instanceof GatewayError) || settled.length === 1) throw failure
  const open = failures.find((one) => one instanceof GatewayError && one.detail.accepted !== 'no')
  if (open || failures.length === settled.length) throw open ?? failure
  const { accepted: _, ...detail } = failure.detail
  const fail_code = failure.code === 'content_policy_violation' ? 'content_policy_violation' : 'upstream_error'
  const message = `${failure.message} Other images of the request were made, and may have been charged.`
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

const mostIn = async ({ maxImagesPerCall: most }: ImageModel, modelId: string): Promise<unknown> =>
  typeof most === 'function' ? most({ modelId }) : most

const base64Of = (image: string | Uint8Array): string =>
  typeof image === 'string' ? image : Buffer.from(image).toString('base64')

const presented = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).filter(([, value]) => !value.includes(UNUSED_KEY)))
