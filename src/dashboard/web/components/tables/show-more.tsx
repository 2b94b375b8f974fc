/** The button below a list with further pages. */
import { Button } from '../actions/button.js'
import { ProblemLine } from '../states/states.js'
import type { Pages } from '../../api/list-pages.js'

interface MoreProps {
  readonly pages: Pages<unknown>
  /** The button's text, such as "Older keys". */
  readonly label: string
}

/** Loads the next page, and shows why the last attempt failed. */
export function More({ pages: { more, isLoading, problem }, label }: MoreProps) {
  if (more === null) return null
  return (
    <div className="more">
      <ProblemLine problem={problem} />
      <Button busy={isLoading} onClick={more}>
        {label}
      </Button>
    </div>
  )
}
