/** Facts, as names with values, in drawers and blocks. */
import type { ReactNode } from 'react'
import type { GenerationReply } from '../../../control/dashboard/schema/schema.js'

/** A list of facts. */
export function Facts({ children }: { readonly children: ReactNode }) {
  return <dl className="facts">{children}</dl>
}

/** A fact; nothing for one that is null. */
export function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  if (children === null) return null
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  )
}

/** The line at the head of a drawer: the state first, then what matters most, with dots between them. */
export function Summary({ children }: { readonly children: ReactNode }) {
  return (
    <p className="summary row" role="group" aria-label="Summary">
      {children}
    </p>
  )
}

interface DrawerSectionProps {
  readonly title: string
  readonly children: ReactNode
}

/** A part of a drawer with a heading. */
export function DrawerSection({ title, children }: DrawerSectionProps) {
  return (
    <section className="stack">
      <h3>{title}</h3>
      {children}
    </section>
  )
}

interface ChangesProps extends Pick<GenerationReply, 'changes'> {
  /** Further ones open on demand. */
  readonly most?: number
}

/** The values that a change has set, or that differ between two generations of the configuration. */
export function Changes({ changes, most = changes.length }: ChangesProps) {
  if (changes.length === 0) return null
  const rest = changes.length - most
  return (
    <>
      <ChangeList changes={changes.slice(0, most)} />
      {rest <= 0 ? null : (
        <details>
          <summary>and {rest} more</summary>
          <ChangeList changes={changes.slice(most)} />
        </details>
      )}
    </>
  )
}

function ChangeList({ changes }: Pick<GenerationReply, 'changes'>) {
  return (
    <ul className="changes stack gap-4" aria-label="Changes">
      {changes.map(({ path, before, after }) => (
        <li key={path}>
          <code>{path}</code> {before === null ? null : <del>{before}</del>}{' '}
          {after === null ? <span className="soft">gone</span> : <ins>{after}</ins>}
        </li>
      ))}
    </ul>
  )
}
