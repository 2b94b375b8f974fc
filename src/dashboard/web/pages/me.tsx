/** What the programs of the person who is signed in used, and what is left of the limits. */
import type { OwnUsageReply } from '../../../control/dashboard/schema/schema.js'
import { useResource } from '../api/use-resource.js'
import { Fact, Facts } from '../components/facts.js'
import { NamedLevels } from '../components/limits.js'
import { Empty, Loaded } from '../components/loading-states.js'
import { Money } from '../components/values.js'
import { count, plural } from '../format/number.js'
import { Block, Page } from '../shell/page.js'
import { useScope } from '../shell/session.js'

type OwnUsage = NonNullable<OwnUsageReply['usage']>

const EVERY_MS = 15_000

export function MePage() {
  const account = useScope()
  const enabled = account !== 'all'
  const resource = useResource('/own-usage', { account }, { everyMs: EVERY_MS, enabled })
  return (
    <Page
      title="My programs"
      purpose="What programs that you signed in used for this account, and what you have left."
    >
      {enabled ? (
        <Loaded resource={resource} what="Your use" unaffected="Your programs work as before.">
          {({ usage }) => (usage === null ? <NoPrograms /> : <Figures usage={usage} />)}
        </Loaded>
      ) : null}
    </Page>
  )
}

function NoPrograms() {
  return (
    <Empty title="No programs of yours here">
      Programs sign in with <code>sluice login</code> if the gateway allows it, and act for owners and members
      of an account.
    </Empty>
  )
}

function Figures({ usage: { today, month, models, limits } }: { readonly usage: OwnUsage }) {
  return (
    <>
      <Block title="Used" note="days and months of UTC">
        <Facts>
          <Fact name="Today">
            <Used sum={today} />
          </Fact>
          <Fact name="This month">
            <Used sum={month} />
          </Fact>
          {models.map((sum) => (
            <Fact key={sum.model} name={sum.model}>
              <Used sum={sum} />
            </Fact>
          ))}
        </Facts>
      </Block>
      {limits.length === 0 ? null : (
        <Block title="Left" note="of the limits for you and the account">
          <NamedLevels levels={limits} withSubject />
        </Block>
      )}
    </>
  )
}

function Used({ sum }: { readonly sum: OwnUsage['today'] }) {
  const { requests, inputTokens, outputTokens, costNanoUsd } = sum
  return (
    <>
      <Money nano={costNanoUsd} /> · {plural(requests, 'request')} · {count(inputTokens)} tokens in ·{' '}
      {count(outputTokens)} out
    </>
  )
}
