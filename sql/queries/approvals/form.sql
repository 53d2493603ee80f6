-- What the answer of a reviewer has to fit.
select form
from approval_subjects
where tenant_id = $1 and approval_id = $2
