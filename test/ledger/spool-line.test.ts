/**
 * Goal: a spooled line contains the entry and the budget amounts to correct; old lines can be read.
 * Method: lines are written and read back, and damaged.
 */
import t from 'tap'
import { readSpoolLine, writeSpoolLine } from '../../src/ledger/spool.js'
import type { Demand } from '../../src/store/ledger.js'
import { writeEntry } from '../../src/store/records/entry-text.js'
import { ledgerEntry } from './build-entry.js'

const DAY: Demand = {
  kind: 'usd_day',
  subject: 'model:a\tb\n',
  shared: true,
  limitNanoUsd: 1e15,
  costNanoUsd: 7,
}
const RATE: Demand = { kind: 'requests', subject: 'key:k', shared: false, perMinute: 9, cost: 1 }

void t.test('budgets are written to the line, rates are not', (t) => {
  const row = ledgerEntry('a')
  for (const takenFrom of ['slice', 'nothing'] as const) {
    const line = writeSpoolLine({
      row,
      reservation: { takenFrom, demands: [RATE, DAY] },
    })
    t.notMatch(line, '\n', 'one line')
    t.same(readSpoolLine(line), { row, reservation: { takenFrom, demands: [DAY] } })
  }
  t.end()
})

void t.test('a line without budgets is the text of the entry', (t) => {
  const row = ledgerEntry('a')
  const text = writeEntry(row)
  t.equal(writeSpoolLine({ row, reservation: undefined }), text)
  const reserved = { takenFrom: 'reserved', demands: [DAY] } as const
  t.same(readSpoolLine(writeSpoolLine({ row, reservation: reserved })), { row, reservation: reserved })
  t.equal(writeSpoolLine({ row, reservation: { takenFrom: 'nothing', demands: [RATE] } }), text)
  t.same(readSpoolLine(text), { row, reservation: undefined }, 'as before')
  t.end()
})

void t.test('damage is reported and never read as another value', (t) => {
  const text = writeEntry(ledgerEntry('a'))
  const tails = [
    '',
    '{',
    '[]',
    '["nothing"]',
    '["else",[]]',
    '["nothing",[["usd_day",1,0,1,1]]]',
    '["nothing",[["tokens","key:k",0,1,1]]]',
    '["nothing",[["usd_day","key:k",0,1,null]]]',
  ]
  for (const tail of tails) t.throws(() => readSpoolLine(`${text}\t${tail}`), Error, tail)
  t.end()
})
