/** Checks the rules of limits that the schema cannot express. */
import { BUILT_IN_PLANS } from '../accounts/plans.js'
import type { Path, ReportFinding } from './config-problem.js'
import type { FileValues } from './schema/config-file-schema.js'
import { dimensionOf, LIMIT_MEMBERS, PLAIN_LIMITS, UNIT_LIMITS } from '../base/limit-members.js'
import { amountsOf, SELECTORS } from './schema/limits-schema.js'
import { reportUnknown } from './check-routes.js'

/** Reports rules without a limit, duplicate dimensions, with unknown names, and duplicates. */
export function checkLimits(values: FileValues, report: ReportFinding): void {
  const upstreams = Object.keys(values.upstreams)
  const plans = [...new Set([...Object.keys(values.plans), ...Object.keys(BUILT_IN_PLANS)])]
  values.limiting.child_plans?.forEach((name, index) => {
    if (plans.includes(name)) return
    reportUnknown({ what: 'a plan', name, path: ['limiting', 'child_plans', index] }, plans, report)
  })
  const dimensions = values.dimensions.map(({ name }) => name)
  dimensions.forEach((name, index) => {
    if (dimensions.indexOf(name) < index) report(['dimensions', index, 'name'], 'is a duplicate')
  })
  const firsts = new Map<string, number>()
  values.limits.forEach((rule, index) => {
    const path: Path = ['limits', index]
    const amounts = amountsOf(rule)
    const given = LIMIT_MEMBERS.filter(({ field }) => amounts[field] !== undefined)
    if (given.length === 0) {
      const names = [...PLAIN_LIMITS.map(({ name }) => name), UNIT_LIMITS.name]
      report(path, `sets no limit: add one of ${names.join(', ')}`)
    }
    if (rule.model !== undefined && rule.prefix !== undefined) {
      report(path, 'must have model or prefix, not both')
    }
    if (rule.value !== undefined && !rule.scope.startsWith('label:')) {
      report([...path, 'value'], 'needs a scope of label:NAME: it is the value of that label')
    }
    const dimension = dimensionOf(rule.scope)
    if (dimension !== null && !dimensions.includes(dimension)) {
      reportUnknown({ what: 'a dimension', name: dimension, path: [...path, 'scope'] }, dimensions, report)
    }
    if (rule.plan !== undefined && !plans.includes(rule.plan)) {
      reportUnknown({ what: 'a plan', name: rule.plan, path: [...path, 'plan'] }, plans, report)
    }
    if (rule.upstream !== undefined && !upstreams.includes(rule.upstream)) {
      const { upstream } = rule
      const unknown = { what: 'an upstream', name: upstream, path: [...path, 'upstream'] } as const
      reportUnknown(unknown, upstreams, report)
    }
    for (const { name } of given) {
      const identity = JSON.stringify([name, rule.scope, ...SELECTORS.map((selector) => rule[selector])])
      const first = firsts.get(identity)
      if (first === undefined) firsts.set(identity, index)
      else report([...path, ...name.split(' ')], `is a duplicate: limits[${first}] limits the same requests`)
    }
  })
}
