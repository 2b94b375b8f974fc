/** The attempts of a request: upstream, outcome and duration. */
import type { RequestRow } from '../../../server/schema/schema.js'
import { attemptsOf, kindText } from '../../format/failure-texts.js'
import { Took } from '../../components/tables/figure.js'

/** The attempts in order; renders nothing without attempts. */
export function Attempts({ row }: { readonly row: RequestRow }) {
  const attempts = attemptsOf(row)
  if (attempts.length === 0) return null
  return (
    <section>
      <h3 className="drawer-heading">Attempts</h3>
      <table className="table attempts">
        <caption className="unseen">Attempts</caption>
        <thead>
          <tr>
            <th scope="col">Upstream</th>
            <th scope="col">Outcome</th>
            <th scope="col" className="numeric">
              Time
            </th>
          </tr>
        </thead>
        <tbody>
          {attempts.map(({ upstream, outcome, ms }, at) => (
            <tr key={at}>
              <th scope="row">{upstream}</th>
              <td>
                <span className={`status ${toneOf(outcome)}`}>{kindText(outcome)}</span>
              </td>
              <td className="numeric">
                <Took ms={ms} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

function toneOf(outcome: string): string {
  if (outcome === 'ok') return 'good'
  return outcome === 'cancelled' || outcome === 'client_gone' ? 'warn' : 'bad'
}
