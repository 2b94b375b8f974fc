/** The choice whether a page shows the selected account alone or with all accounts below it. */
import { setFilter } from '../routing.js'
import { useTree } from './session.js'

/** The button; nothing for those who may not see the accounts below. `also`: what else it resets. */
export function TreeChoice({ also = {} }: { readonly also?: Readonly<Record<string, null>> }) {
  const { isTree, mayTree } = useTree()
  if (!mayTree) return null
  return (
    <button
      type="button"
      className="pick tag"
      aria-pressed={isTree}
      onClick={() => setFilter({ own: isTree ? '1' : null, ...also })}
    >
      {isTree ? 'with accounts below' : 'only itself'}
    </button>
  )
}
