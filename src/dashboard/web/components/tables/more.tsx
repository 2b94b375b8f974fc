/** What stands below a list that has more pages. */
import { Button } from '../actions/button.js'
import { ProblemLine } from '../states/states.js'
import type { Pages } from '../../api/list-pages.js'

interface MoreProps {
  readonly pages: Pages<unknown>
  /** On the button, such as "Older keys". */
  readonly label: string
}

/** A button that loads the next page, and why the last one did not come. */
export function More({ pages: { more, isLoading, problem }, label }: MoreProps) {
  if (more === null) return null
  return (
    <div className="more">
      {problem === null ? null : <ProblemLine problem={problem} />}
      <Button busy={isLoading} onClick={more}>
        {label}
      </Button>
    </div>
  )
}
