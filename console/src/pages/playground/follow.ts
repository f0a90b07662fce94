/** Keeps the end of growing answers in view, unless the person has scrolled away from it. */
import { type RefObject, useEffect, useRef } from 'react'

/** How far below the window the end may be to be followed. */
const NEAR_PIXELS = 240

/** `changed`: whatever changes when the answers grow. Returns the place of their end. */
export function useFollow(changed: unknown, isFollowed: boolean): RefObject<HTMLDivElement | null> {
  const end = useRef<HTMLDivElement>(null)
  const wasFollowed = useRef(false)
  // biome-ignore lint/correctness/useExhaustiveDependencies: each growth is a reason to look again
  useEffect(() => {
    const place = end.current
    // The last change comes with the end of the answer.
    const isDue = isFollowed || wasFollowed.current
    wasFollowed.current = isFollowed
    if (!place || !isDue) return
    if (place.getBoundingClientRect().top < window.innerHeight + NEAR_PIXELS) place.scrollIntoView({ block: 'end' })
  }, [changed, isFollowed])
  return end
}
