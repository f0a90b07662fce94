/** Shows what a task has generated: pictures, videos and 3D models in the page, everything else as a link. */
import { lazy, Suspense } from 'react'
import type { AdminTaskOutputs } from '../../api/types.ts'
import { isOwnPath, webAddress } from '../../lib/foreign-address.ts'
import { Loading } from '../../ui/states.tsx'

export type Output = AdminTaskOutputs['outputs'][number]

/** Files of the gateway itself are shown; those of a provider only linked: the page contacts no other host. */
const isOwn = ({ url }: Output): boolean => isOwnPath(url)
/** Only addresses of the web: what a provider names could be a script. */
export const addressOf = ({ url }: Output): string | undefined => (isOwnPath(url) || webAddress(url) ? url : undefined)

/** One output, as large as its place. `label`: what it is. */
export function Poster({ output, label }: { output: Output; label: string }) {
  const { content_type, url } = output
  if (isOwn(output) && /^image\/(?!svg)/.test(content_type)) return <img src={url} alt={label} loading="lazy" />
  if (isOwn(output) && content_type.startsWith('video/'))
    return <video src={url} preload="metadata" muted playsInline aria-label={label} />
  return <span className="faint">{content_type || label}</span>
}

const Viewer = lazy(() => import('../../ui/viewer-3d.tsx').then(({ Viewer3d }) => ({ default: Viewer3d })))

/** One output with its controls. */
export function Player({ output, label }: { output: Output; label: string }) {
  const { content_type, url } = output
  if (isOwn(output) && content_type.startsWith('video/'))
    return (
      // biome-ignore lint/a11y/useMediaCaption: generated videos have no captions
      <video className="task-output" src={url} controls preload="metadata" playsInline aria-label={label} />
    )
  if (isOwn(output) && /^image\/(?!svg)/.test(content_type))
    return <img className="task-output" src={url} alt={label} />
  if (isOwn(output) && content_type === 'model/gltf-binary')
    return (
      <Suspense fallback={<Loading lines={3} />}>
        <Viewer address={url} />
      </Suspense>
    )
  return null
}
