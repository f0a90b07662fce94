/** Keeps the end of growing answers in view, unless the person has scrolled away from it. */
import { type RefObject, useEffect, useRef } from 'react'

/** How far below the window the end may be to be followed. */
const NEAR_PIXELS = 240

/** `changed`: whatever changes when the answers grow. Returns the place of their end. */
export function useFollow(changed: unknown, isFollowed: boolean): RefObject<HTMLDivElement | null> {
  const end = useRef<HTMLDivElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: each growth is a reason to look again
  useEffect(() => {
    const place = end.current
    if (!place || !isFollowed) return
    if (place.getBoundingClientRect().top < window.innerHeight + NEAR_PIXELS) place.scrollIntoView({ block: 'end' })
  }, [changed, isFollowed])
  return end
}
