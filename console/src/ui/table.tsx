/** A table of any length: only the rows in view are in the document. Rows are links, which the arrow keys follow. */
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { type CSSProperties, type KeyboardEvent, type ReactNode, useLayoutEffect, useRef, useState } from 'react'
import { A, Button } from './button.tsx'
import { Icon } from './icon.tsx'
import { Failed, Loading } from './states.tsx'

export type Column<Row> = {
  key: string
  head: string
  cell(row: Row): ReactNode
  isNumber?: boolean
  /** Whether the list can be sorted by it. */
  isSortable?: boolean
}

/** `-cost`: by cost, the highest first. */
export type Sort = string

type TableProps<Row> = {
  /** Its name for screen readers. */
  label: string
  columns: Column<Row>[]
  rows: Row[]
  keyOf(row: Row): string
  /** The page of a row; the first column is its link. */
  linkOf?: ((row: Row) => { to: string; search?: Record<string, string> } | undefined) | undefined
  sort?: Sort | undefined
  onSort?(sort: Sort): void
  isLoading?: boolean
  error?: Error | null
  onRetry?(): void
  /** Shown instead of the table when there are no rows. */
  empty?: ReactNode
  hasMore?: boolean
  isLoadingMore?: boolean
  onMore?(): void
  /** Below the rows, such as how many there are. */
  foot?: ReactNode
}

const ROW_HEIGHT = 44
const ROWS_WITHOUT_VIRTUAL = 80

export function Table<Row>(props: TableProps<Row>) {
  const { rows, isLoading = false, error = null, onRetry, empty, foot, hasMore, isLoadingMore = false, onMore } = props
  if (error && rows.length === 0)
    return (
      <div className="table-frame">
        <Failed error={error} onRetry={onRetry} />
      </div>
    )
  if (isLoading)
    return (
      <div className="table-frame">
        <Loading lines={8} />
      </div>
    )
  if (rows.length === 0)
    return <div className="table-frame">{empty ?? <p className="state">There are no rows.</p>}</div>
  return (
    <div className="table-frame">
      <Rows {...props} />
      {(foot || hasMore) && (
        <div className="table-foot">
          <span>{foot}</span>
          {hasMore && (
            <Button size="small" onClick={onMore} isBusy={isLoadingMore}>
              Load more
            </Button>
          )}
        </div>
      )}
    </div>
  )
}

function Rows<Row>({ label, columns, rows, keyOf, linkOf, sort, onSort }: TableProps<Row>) {
  const frame = useRef<HTMLDivElement>(null)
  const [margin, setMargin] = useState(0)
  useLayoutEffect(() => {
    const top = frame.current?.getBoundingClientRect().top ?? 0
    setMargin(top + window.scrollY)
  }, [])
  const isVirtual = rows.length > ROWS_WITHOUT_VIRTUAL
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => ROW_HEIGHT,
    overscan: 12,
    scrollMargin: margin,
    enabled: isVirtual,
  })
  const items = isVirtual ? virtual.getVirtualItems() : rows.map((_, index) => ({ index, start: 0, end: 0 }))
  const before = isVirtual ? Math.max(0, (items[0]?.start ?? margin) - margin) : 0
  const after = isVirtual ? Math.max(0, virtual.getTotalSize() - ((items.at(-1)?.end ?? margin) - margin)) : 0
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keyboard
    <section ref={frame} className="table-scroll" aria-label={label} tabIndex={0} onKeyDown={followArrows}>
      <table className="table" aria-label={label} aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            {columns.map((column) => (
              <Head key={column.key} column={column} sort={sort} onSort={onSort} />
            ))}
          </tr>
        </thead>
        <tbody>
          {before > 0 && <Spacer height={before} columns={columns.length} />}
          {items.map(({ index }) => {
            const row = rows[index]
            if (row === undefined) return null
            const link = linkOf?.(row)
            return (
              <tr key={keyOf(row)} data-link={link ? '' : undefined} aria-rowindex={index + 2}>
                {columns.map((column, place) => (
                  <td key={column.key} className={column.isNumber ? 'number' : undefined}>
                    {link && place === 0 ? (
                      <A {...link} className="row-link">
                        {column.cell(row)}
                      </A>
                    ) : (
                      column.cell(row)
                    )}
                  </td>
                ))}
              </tr>
            )
          })}
          {after > 0 && <Spacer height={after} columns={columns.length} />}
        </tbody>
      </table>
    </section>
  )
}

/** Stands for the rows that are not in view. */
const Spacer = ({ height, columns }: { height: number; columns: number }) => (
  <tr className="spacer" style={{ '--spacer': `${height}px` } as CSSProperties}>
    <td colSpan={columns} />
  </tr>
)

type HeadProps<Row> = { column: Column<Row>; sort: Sort | undefined; onSort: ((sort: Sort) => void) | undefined }

function Head<Row>({ column: { key, head, isNumber, isSortable }, sort, onSort }: HeadProps<Row>) {
  const className = isNumber ? 'number' : undefined
  if (!isSortable || !onSort)
    return (
      <th className={className} scope="col">
        {head || <span className="hidden-text">Acts</span>}
      </th>
    )
  const isUp = sort === key
  const isDown = sort === `-${key}`
  return (
    <th className={className} scope="col" aria-sort={isUp ? 'ascending' : isDown ? 'descending' : 'none'}>
      <button type="button" className="sort" onClick={() => onSort(isDown ? key : `-${key}`)}>
        {head}
        {(isUp || isDown) && <Icon name={isUp ? 'up' : 'down'} />}
      </button>
    </th>
  )
}

/** The arrow keys, and j and k, move between the rows that are links. */
export function followArrows(event: KeyboardEvent<HTMLElement>): void {
  const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key]
  if (step === undefined || event.metaKey || event.ctrlKey || event.altKey) return
  if (event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement) return
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>('.row-link')]
  if (links.length === 0) return
  const at = links.indexOf(document.activeElement as HTMLElement)
  const next = links[at === -1 ? (step > 0 ? 0 : links.length - 1) : at + step]
  if (!next) return
  event.preventDefault()
  next.focus()
  next.scrollIntoView({ block: 'nearest' })
}

/** Rows in the order of a sort. `sortValue`: what a column is sorted by. */
export function sorted<Row>(
  rows: Row[],
  sort: Sort,
  sortValue: (row: Row, key: string) => string | number | null | undefined,
): Row[] {
  const isDown = sort.startsWith('-')
  const key = isDown ? sort.slice(1) : sort
  const compare = (one: Row, other: Row): number => {
    const [a, b] = [sortValue(one, key) ?? '', sortValue(other, key) ?? '']
    if (typeof a === 'number' && typeof b === 'number') return a - b
    if (typeof a !== typeof b) return typeof a === 'number' ? 1 : -1
    return String(a).localeCompare(String(b), undefined, { numeric: true })
  }
  return [...rows].sort((one, other) => (isDown ? -compare(one, other) : compare(one, other)))
}
