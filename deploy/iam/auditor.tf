# Made by `reaperd iam-policy --role auditor --format terraform`.

resource "aws_iam_policy" "reaperd_auditor" {
  name        = "reaperd-prod-eu-auditor"
  description = "reaperd: look everywhere, change nothing"

  policy = jsonencode({
    "Version" : "2012-10-17",
    "Statement" : [
      {
        "Sid" : "Look",
        "Effect" : "Allow",
        "Action" : [
          "ec2:DescribeAvailabilityZones",
          "ec2:DescribeFleets",
          "ec2:DescribeInstanceStatus",
          "ec2:DescribeInstances",
          "ec2:DescribeRegions",
          "ec2:DescribeSpotFleetRequests",
          "ec2:DescribeSpotInstanceRequests",
          "sts:GetCallerIdentity"
        ],
        "Resource" : "*"
      },
      {
        "Sid" : "ChangeNothing",
        "Effect" : "Deny",
        "Action" : [
          "ec2:CancelSpotInstanceRequests",
          "ec2:CreateTags",
          "ec2:DeleteTags",
          "ec2:ModifyInstanceAttribute",
          "ec2:RunInstances",
          "ec2:StopInstances",
          "ec2:TerminateInstances"
        ],
        "Resource" : "*"
      }
    ]
  })
}
