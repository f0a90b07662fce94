/** The head of a page: its one `<h1>`, where it belongs, and its acts. */
import type { ReactNode } from 'react'
import { A } from './button.tsx'
import { useTitle } from './title.ts'

type PageHeadProps = {
  title: string
  /** Beside the title, such as a badge. */
  aside?: ReactNode
  /** One sentence on what the page is for. */
  note?: ReactNode
  acts?: ReactNode
  /** The pages above this one. */
  crumbs?: { to: string; label: string; search?: Record<string, string> }[]
}

export function PageHead({ title, aside, note, acts, crumbs = [] }: PageHeadProps) {
  useTitle(title)
  return (
    <div className="page-head">
      <div className="page-head-text">
        {crumbs.length > 0 && (
          <nav className="crumbs" aria-label="Above this page">
            {crumbs.map(({ to, label, search = {} }) => (
              <span key={to}>
                <A to={to} search={search}>
                  {label}
                </A>{' '}
                /
              </span>
            ))}
          </nav>
        )}
        <div className="row">
          <h1>{title}</h1>
          {aside}
        </div>
        {note && <p className="page-note">{note}</p>}
      </div>
      {acts && <div className="row">{acts}</div>}
    </div>
  )
}
