/** Whether the view follows what happens now. */

/** A dot and a word; it stands still where motion is not wanted. */
export function Pulse({ on }: { readonly on: boolean }) {
  return (
    <span
      className={on ? 'pulse on' : 'pulse'}
      title={on ? 'Renewed each second' : 'A closed span of time'}
    >
      {on ? 'live' : 'past'}
      <span className="pulse-dot" aria-hidden="true" />
    </span>
  )
}
