// Estimated cost of the next call: in total, compared with the current model, and what is left of the budget.
import { dollars } from "../format";

interface Quote {
  costEstimate: number | null;
  costDifference: number | null;
  estimateBasis: string;
  budgetLeft: number | null;
}

export function Estimate({ quote }: { quote: Quote }) {
  const difference = quote.costDifference;
  return (
    <>
      <dl class="summary">
        <div>
          <dt>Estimated cost of the next attempt</dt>
          <dd>{quote.costEstimate === null ? "unknown" : dollars(quote.costEstimate)}</dd>
        </div>
        {difference ? (
          <div>
            <dt>Compared with the current model</dt>
            <dd>{`${dollars(Math.abs(difference))} ${difference > 0 ? "more" : "less"}`}</dd>
          </div>
        ) : null}
        <div>
          <dt>Remaining budget</dt>
          <dd>{quote.budgetLeft === null ? "no budget set" : dollars(quote.budgetLeft)}</dd>
        </div>
      </dl>
      <p class="muted small">{quote.costEstimate === null ? "No estimate" : "Estimated"}: {quote.estimateBasis}.</p>
    </>
  );
}
