/** The objects before and after one in the list from which it was opened, and the way back to that list. */
import { useNavigate } from '@tanstack/react-router'
import { useEffect } from 'react'
import { ButtonLink } from './button.tsx'
import { Icon } from './icon.tsx'
import { useKeys } from './keys.ts'

type Target = { to: string; search: Record<string, string> }

type NeighborsProps = {
  /** For screen readers, such as `Tasks beside this one`. */
  label: string
  before: Target | undefined
  after: Target | undefined
  list: Target
  names?: readonly [before: string, after: string]
}

/** `j` and `k`, or the arrows, lead to them; Escape leads back to the list. */
export function Neighbors({ label, before, after, list, names = ['Previous', 'Next'] }: NeighborsProps) {
  const navigate = useNavigate()
  const open = (target: Target | undefined) => target && (() => void navigate(target as never))
  useKeys({
    j: open(after),
    ArrowRight: open(after),
    k: open(before),
    ArrowLeft: open(before),
    Escape: open(list),
  })
  return (
    <nav className="row" aria-label={label}>
      <NeighborLink target={before} label={names[0]} icon="left" />
      <NeighborLink target={after} label={names[1]} icon="right" />
    </nav>
  )
}

function NeighborLink({ target, label, icon }: { target: Target | undefined; label: string; icon: 'left' | 'right' }) {
  const content = (
    <>
      {icon === 'left' && <Icon name="left" />}
      {label}
      {icon === 'right' && <Icon name="right" />}
    </>
  )
  if (!target)
    return (
      <span className="button" data-kind="plain" aria-disabled="true">
        {content}
      </span>
    )
  return (
    <ButtonLink to={target.to} search={target.search} kind="plain">
      {content}
    </ButtonLink>
  )
}

type ListNeighborsProps = {
  label: string
  /** The path of the list; that of an object is below it. */
  path: string
  id: string
  ids: string[]
  /** The list's filters in the address. */
  kept: Record<string, string>
  list: { hasMore: boolean; isLoadingMore: boolean; error: Error | null; more(): void }
}

/** By the rows of the list that are read; those after the last one are read when it is reached. */
export function ListNeighbors({ label, path, id, ids, kept, list }: ListNeighborsProps) {
  const { hasMore, isLoadingMore, error, more } = list
  const index = ids.indexOf(id)
  const isLast = index >= 0 && index === ids.length - 1
  useEffect(() => {
    if (isLast && hasMore && !isLoadingMore && !error) more()
  }, [isLast, hasMore, isLoadingMore, error, more])
  const target = (at: number) => {
    const other = index < 0 ? undefined : ids[at]
    return other === undefined ? undefined : { to: `${path}/${other}`, search: kept }
  }
  return (
    <Neighbors label={label} before={target(index - 1)} after={target(index + 1)} list={{ to: path, search: kept }} />
  )
}
