/** Describes a page of the console: its address, its place in the navigation, who may open it, and how it is loaded. */
import type { ComponentType } from 'react'
import type { Administrator } from '../api/types.ts'
import type { IconName } from '../ui/icon.tsx'

export type NavGroup = 'Overview' | 'Build' | 'Observe' | 'Access' | 'Gateway'
export type Right = Administrator['rights'][number]

/** Something that the palette finds. */
export type Found = { label: string; note?: string; to: string; search?: Record<string, string>; icon: IconName }

export type Page = {
  /** Below /console, in the syntax of the router: `/tokens/$token_id`, `/models/$` for the rest of the path. */
  path: string
  title: string
  /** Where the navigation has it; absent: it is reached from another page. */
  nav?: { group: NavGroup; icon: IconName }
  /** Who sees it in the navigation; default: everybody who is logged in. */
  isFor?(me: Administrator): boolean
  /** Loaded when it is first opened. */
  load(): Promise<{ Page: ComponentType }>
  /** Objects of this page by name or id, for the palette. */
  find?(text: string, signal: AbortSignal): Promise<Found[]>
}

/** Whether somebody may do something in the whole installation. */
export const hasRight = (me: Administrator | undefined, right: Right): boolean => me?.rights.includes(right) ?? false
/** Whether somebody manages this project and its tokens: their role in it counts, whichever project is chosen. */
export function mayManage(me: Administrator | undefined, project_id: string | null): boolean {
  const membership = me?.memberships.find((one) => one.project_id === project_id)
  return membership ? membership.role === 'project_admin' : hasRight(me, 'manage')
}
/** Whether somebody sees all projects. */
export const seesAll = (me: Administrator | undefined): boolean => me !== undefined && me.project_id === null
